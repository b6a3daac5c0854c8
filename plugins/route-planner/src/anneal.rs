//! The search: simulated annealing. A random part of the way is turned round; what makes the way longer is kept only while the
//! search is hot.

use crate::geo::Distances;

/// A search for a short way that starts at place 0.
#[derive(Debug)]
pub(crate) struct Search {
    distances: Distances,
    round_trip: bool,
    order: Vec<usize>,
    length: f64,
    best: Vec<usize>,
    best_length: f64,
    start_temperature: f64,
    random: Random,
}

impl Search {
    pub(crate) fn new(distances: Distances, round_trip: bool) -> Self {
        let order: Vec<usize> = (0..distances.count()).collect();
        let length = length(&distances, &order, round_trip);
        Self {
            // At first, a detour of an average leg is as good as no detour.
            start_temperature: length / order.len() as f64,
            best: order.clone(),
            best_length: length,
            random: Random(0x9e37_79b9_7f4a_7c15),
            distances,
            round_trip,
            order,
            length,
        }
    }

    pub(crate) fn best(&self) -> &[usize] {
        &self.best
    }

    /// In kilometres.
    pub(crate) fn best_length(&self) -> f64 {
        self.best_length
    }

    /// Searches for a number of steps. `heat` falls from 1.0 at the start of the search to 0.0 at its end.
    pub(crate) fn round(&mut self, heat: f64, steps: u32) {
        // A cube: most of the time is spent cold, where the way becomes short.
        let temperature = self.start_temperature * heat.powi(3);
        for _ in 0..steps {
            self.step(temperature);
        }
        // The sum of many small changes is not quite the length.
        self.length = length(&self.distances, &self.order, self.round_trip);
        self.keep_if_best();
    }

    fn step(&mut self, temperature: f64) {
        let count = self.order.len();
        // The first place stays the first.
        let (a, b) = (
            1 + self.random.below(count - 1),
            1 + self.random.below(count - 1),
        );
        let (from, to) = (a.min(b), a.max(b));
        let change = self.change_by_turning(from, to);
        if change <= 0.0 || self.random.unit() < (-change / temperature).exp() {
            self.order[from..=to].reverse();
            self.length += change;
            if self.length < self.best_length {
                self.keep_if_best();
            }
        }
    }

    /// How much longer the way is if the part from `from` to `to` is turned round.
    fn change_by_turning(&self, from: usize, to: usize) -> f64 {
        let between = |a, b| self.distances.between(a, b);
        let (before, first, last) = (self.order[from - 1], self.order[from], self.order[to]);
        let after = match self.order.get(to + 1) {
            Some(next) => *next,
            None if self.round_trip => self.order[0],
            None => return between(before, last) - between(before, first),
        };
        between(before, last) + between(first, after)
            - between(before, first)
            - between(last, after)
    }

    fn keep_if_best(&mut self) {
        if self.length < self.best_length {
            self.best_length = self.length;
            self.best.clone_from(&self.order);
        }
    }
}

fn length(distances: &Distances, order: &[usize], round_trip: bool) -> f64 {
    let legs: f64 = order
        .windows(2)
        .map(|leg| distances.between(leg[0], leg[1]))
        .sum();
    match (round_trip, order) {
        (true, [first, .., last]) => legs + distances.between(*last, *first),
        _ => legs,
    }
}

/// Random enough for a search, and the same in every run, so that the same question has the same answer (xorshift*).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 to `bound` - 1.
    fn below(&mut self, bound: usize) -> usize {
        (((self.next() >> 32) * bound as u64) >> 32) as usize
    }

    /// From 0.0 to just below 1.0.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::{distances, place};

    /// Places on a circle, in an order that crosses it again and again.
    fn search(count: usize, round_trip: bool) -> Search {
        let places: Vec<_> = (0..count)
            .map(|n| {
                let angle = std::f64::consts::TAU * (n * 7 % count) as f64 / count as f64;
                place("p", angle.sin(), angle.cos())
            })
            .collect();
        Search::new(distances(&places), round_trip)
    }

    #[test]
    fn a_circle_is_found() {
        let mut search = search(30, true);
        for round in 0..10 {
            search.round(1.0 - f64::from(round) / 10.0, 20_000);
        }
        // A circle of one degree: 2 * pi * 111.2 km, a little less along the chords.
        assert!(
            (search.best_length() - 697.0).abs() < 5.0,
            "{}",
            search.best_length()
        );
        assert_eq!(search.best()[0], 0);
        let mut visited = search.best().to_vec();
        visited.sort_unstable();
        assert_eq!(visited, (0..30).collect::<Vec<_>>());
    }

    #[test]
    fn the_kept_length_is_the_length_of_the_kept_order() {
        for round_trip in [true, false] {
            let mut search = search(20, round_trip);
            search.round(0.5, 1_000);
            let exact = length(&search.distances, search.best(), round_trip);
            assert!((search.best_length() - exact).abs() < 0.01);
        }
    }

    #[test]
    fn two_places_and_places_at_one_spot_do_no_harm() {
        search(2, false).round(1.0, 100);
        let same = vec![place("a", 1.0, 1.0); 4];
        let mut search = Search::new(distances(&same), true);
        search.round(1.0, 100);
        assert_eq!(search.best_length(), 0.0);
    }
}
