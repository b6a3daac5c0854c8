//! Owns time here: how long something took, and what many such times say together.

use std::time::{Duration, Instant};

/// Since when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    #[allow(
        clippy::disallowed_methods,
        reason = "a bench measures real time; here and nowhere else"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Until now.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Until now, in milliseconds.
    pub(crate) fn ms(self) -> f64 {
        self.elapsed().as_secs_f64() * 1e3
    }

    /// Until now, in microseconds.
    pub(crate) fn us(self) -> f64 {
        self.elapsed().as_secs_f64() * 1e6
    }
}

/// Measurements of one thing, in one unit.
#[derive(Debug, Default, Clone)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// One more.
    pub(crate) fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Those of another run too.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The least value that is not below `share` (0 to 1) of them, by the nearest rank; zero if there is none.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank within a list in memory"
        )]
        let rank = (share * sorted.len() as f64).ceil() as usize;
        let at = rank.saturating_sub(1).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }

    /// The middle one.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_the_nearest_rank() {
        let samples: Samples = (1..=100).rev().map(f64::from).collect();
        assert_eq!(samples.median().to_bits(), 50_f64.to_bits());
        assert_eq!(samples.quantile(0.99).to_bits(), 99_f64.to_bits());
        assert_eq!(samples.quantile(1.0).to_bits(), 100_f64.to_bits());
        assert_eq!(Samples::default().median().to_bits(), 0_f64.to_bits());
    }
}
