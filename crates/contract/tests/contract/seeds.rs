//! The generator that random tests draw from.

use tidegate_contract::TestRng;

#[test]
fn a_seed_gives_the_same_rolls_and_bounds_hold() {
    let rolls = |seed| {
        let mut rng = TestRng::new(seed);
        (0..100).map(|_| rng.below(6)).collect::<Vec<_>>()
    };
    assert_eq!(rolls(7), rolls(7));
    assert_ne!(rolls(7), rolls(8));
    assert!((0..6).all(|face| rolls(7).contains(&face)) && rolls(7).iter().all(|face| *face < 6));
    assert_eq!(TestRng::new(1).bytes(13).len(), 13);
    assert_eq!(TestRng::new(1).below(0), 0);
}
