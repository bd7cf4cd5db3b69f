//! Draws the picture of a prompt: a sky, a sun and hills whose colours and shapes come from its
//! hash, as a PNG.

use bytes::Bytes;

use crate::rng::SeededRng;

/// The width and height of a picture, in pixels.
pub const SIZE: u32 = 256;

type Color = [f64; 3];

struct Scene {
    sky: [Color; 2],
    sun: (f64, f64, f64),
    hills: [(f64, f64, f64, Color); 3],
}

/// Draws a picture and encodes it as PNG. The same seed gives the same bytes.
#[must_use]
pub fn draw(seed: u64) -> Bytes {
    let scene = Scene::new(&mut SeededRng::new(seed));
    let size = f64::from(SIZE);
    let mut pixels = Vec::with_capacity((SIZE * SIZE * 3) as usize);
    for row in 0..SIZE {
        for column in 0..SIZE {
            let color = scene.color(f64::from(column) / size, f64::from(row) / size);
            pixels.extend(color.map(|part| (part.clamp(0.0, 1.0) * 255.0) as u8));
        }
    }
    encode(&pixels).unwrap_or_default()
}

fn encode(pixels: &[u8]) -> Option<Bytes> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIZE, SIZE);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(file.into())
}

impl Scene {
    fn new(rng: &mut SeededRng) -> Self {
        let mut part =
            |from: f64, to: f64| from + (to - from) * (rng.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let sky = [[part(0.0, 0.5), part(0.1, 0.6), part(0.5, 1.0)], [1.0, part(0.5, 0.9), part(0.4, 0.9)]];
        let sun = (part(0.2, 0.8), part(0.15, 0.5), part(0.06, 0.14));
        let hills = [0.55, 0.68, 0.8].map(|height| {
            let shade = 1.15 - height;
            let color = [part(0.1, 0.9) * shade, part(0.3, 1.0) * shade, part(0.1, 0.8) * shade];
            (height, part(3.0, 9.0), part(0.0, 6.0), color)
        });
        Self { sky, sun, hills }
    }

    fn color(&self, x: f64, y: f64) -> Color {
        let on_hill = |(height, waves, shift, _): &&(f64, f64, f64, Color)| {
            y > height + 0.06 * (x * waves + shift).sin() + 0.02 * (x * waves * 2.7).sin()
        };
        if let Some((.., color)) = self.hills.iter().rev().find(on_hill) {
            return *color;
        }
        let (sun_x, sun_y, radius) = self.sun;
        let distance = ((x - sun_x).powi(2) + (y - sun_y).powi(2)).sqrt();
        let glow = (1.0 - (distance - radius).max(0.0) * 5.0).clamp(0.0, 1.0).powi(3);
        let mix = |part: usize| self.sky[0][part] + (self.sky[1][part] - self.sky[0][part]) * y;
        std::array::from_fn(|part| mix(part) + ([1.0, 0.95, 0.7][part] - mix(part)) * glow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DSP-26: a picture is a real one, and every prompt has its own.
    #[test]
    fn dsp_26_pictures_are_drawn() {
        let picture = draw(7);
        let mut reader = png::Decoder::new(std::io::Cursor::new(&picture)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((frame.width, frame.height, pixels.len()), (SIZE, SIZE, (SIZE * SIZE * 3) as usize));
        let colors: std::collections::HashSet<_> = pixels.chunks(3).collect();
        assert!(colors.len() > 100, "{} colours", colors.len());
        assert_eq!(draw(7), picture);
        assert_ne!(draw(8), picture);
    }
}
