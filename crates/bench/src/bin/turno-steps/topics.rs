//! Publications among few filters and among many.

use turno_bench::publications::{FEW, MANY, Stage};

use crate::Run;

pub(crate) const STEPS: &[(&str, Run)] = &[
    ("engine-publish-among-100", |count| Stage::among(FEW).publish(count)),
    ("engine-publish-among-100000", |count| Stage::among(MANY).publish(count)),
];

#[cfg(test)]
mod tests {
    /// The budget of matching: among a thousand times as many filters at most twice the cost.
    #[test]
    fn the_committed_figures_keep_the_bar() {
        let figure = |name: &str| -> u64 {
            let line = include_str!("../../../steps.txt").lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().parse().unwrap()
        };
        let (few, many) = (figure("engine-publish-among-100 "), figure("engine-publish-among-100000 "));
        assert!(many <= 2 * few, "{many} instructions among 100,000 filters, {few} among 100");
    }
}
