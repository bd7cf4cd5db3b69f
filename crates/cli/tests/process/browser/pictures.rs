//! The pictures of the documentation, which are made anew when the tests of the pages run with
//! `TIDEGATE_PICTURES=1`.

use std::collections::HashMap;
use std::path::Path;

use super::session::{Browser, DESKTOP};

/// The variable that asks for them.
const VARIABLE: &str = "TIDEGATE_PICTURES";
/// The folder that they are in.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images");
/// The most bytes of a picture.
const LEN_MAX: usize = 150_000;
/// The most colours of a palette.
const COLOURS_MAX: usize = 256;
/// How many of them are taken as they are: those that most of a page has.
const EXACT: usize = 64;

type Colour = [u8; 3];

/// Whether they are asked for.
pub(super) fn are_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Keeps a picture of a page under this name, if pictures are asked for.
pub(super) async fn keep(browser: &Browser, url: &str, name: &str) {
    if !are_wanted() {
        return;
    }
    browser.resize(DESKTOP).await;
    browser.prefer("light").await;
    browser.open(url).await;
    let is_ready = "[...document.images].every(image => image.complete) && \
                    (document.getElementById('live')?.textContent ?? '●').includes('●')";
    browser.wait_until(is_ready, &[]).await;
    let picture = with_palette(&browser.picture().await);
    assert!(picture.len() < LEN_MAX, "{name} has {} bytes", picture.len());
    std::fs::write(Path::new(FOLDER).join(format!("{name}.png")), picture).unwrap();
}

/// Encodes a picture with the colours that most of it has; any other becomes the nearest of them.
fn with_palette(png: &[u8]) -> Vec<u8> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let samples = info.color_type.samples();
    assert!(samples >= 3, "a page has colours");
    let colours: Vec<Colour> = pixels.chunks(samples).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let mut counts: HashMap<Colour, usize> = HashMap::new();
    for colour in &colours {
        *counts.entry(*colour).or_default() += 1;
    }
    let palette = palette(&counts);
    let nearest: HashMap<Colour, u8> =
        counts.keys().map(|colour| (*colour, nearest(&palette, *colour))).collect();
    let indices: Vec<u8> = colours.iter().map(|colour| nearest[colour]).collect();
    let mut encoded = Vec::new();
    let mut encoder = png::Encoder::new(&mut encoded, info.width, info.height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette.concat());
    encoder.set_compression(png::Compression::High);
    encoder.set_filter(png::Filter::NoFilter);
    encoder.write_header().unwrap().write_image_data(&indices).unwrap();
    encoded
}

/// The colours that most of a picture has, and for the others one for each of as many parts of
/// them, which are found by cutting the widest part in two again and again.
fn palette(counts: &HashMap<Colour, usize>) -> Vec<Colour> {
    let mut palette: Vec<Colour> = counts.keys().copied().collect();
    palette.sort_by_key(|colour| (std::cmp::Reverse(counts[colour]), *colour));
    let mut parts = vec![palette.split_off(EXACT.min(palette.len()))];
    parts.retain(|part| !part.is_empty());
    while !parts.is_empty() && palette.len() + parts.len() < COLOURS_MAX {
        let widest = (0..parts.len()).max_by_key(|part| widest_channel(&parts[*part])).unwrap();
        let mut part = parts.swap_remove(widest);
        let (width, channel) = widest_channel(&part);
        if width == 0 {
            parts.push(part);
            break;
        }
        part.sort_by_key(|colour| colour[channel]);
        let upper = part.split_off(part.len() / 2);
        parts.extend([part, upper]);
    }
    palette.extend(parts.iter().map(|part| part[part.len() / 2]));
    palette
}

/// The channel in which some colours differ most, after by how much.
fn widest_channel(colours: &[Colour]) -> (u8, usize) {
    let width = |channel: usize| {
        let of = || colours.iter().map(|colour| colour[channel]);
        of().max().unwrap_or_default() - of().min().unwrap_or_default()
    };
    (0..3).map(|channel| (width(channel), channel)).max().unwrap_or_default()
}

/// The place of the colour that is most like this one.
fn nearest(palette: &[Colour], colour: Colour) -> u8 {
    let distance = |other: &Colour| -> u32 {
        colour.iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum()
    };
    let found = palette.iter().enumerate().min_by_key(|(_, other)| distance(other));
    found.map(|(place, _)| u8::try_from(place).unwrap()).unwrap()
}
