//! Seeds that showed a violation. Every run begins with them.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedSeed {
    /// The seed.
    pub seed: u64,
    /// The cause: the engine, the oracle, or both.
    pub why: &'static str,
}

/// The seeds of `crates/sim/seeds.txt`, in its order.
pub fn failed_seeds() -> impl Iterator<Item = FailedSeed> {
    let lines = include_str!("../seeds.txt").lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let (seed, why) = line.split_once(' ').unwrap_or((line, ""));
        let seed = seed.replace('_', "").parse().expect("a line of seeds.txt begins with a seed");
        FailedSeed { seed, why: why.trim() }
    })
}
