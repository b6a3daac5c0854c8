//! Places on earth and the distances between them.

use schemars::JsonSchema;
use serde::Deserialize;

/// Mean radius of the earth, in kilometres.
const EARTH_RADIUS_KM: f64 = 6371.0;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Place {
    /// What it is called.
    pub(crate) name: String,
    /// Degrees north.
    #[schemars(range(min = -90.0, max = 90.0))]
    latitude: f64,
    /// Degrees east.
    #[schemars(range(min = -180.0, max = 180.0))]
    longitude: f64,
}

/// Distances between all places, in kilometres.
#[derive(Debug)]
pub(crate) struct Distances {
    count: usize,
    km: Vec<f32>,
}

impl Distances {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn between(&self, a: usize, b: usize) -> f64 {
        f64::from(self.km[a * self.count + b])
    }
}

pub(crate) fn distances(places: &[Place]) -> Distances {
    let pairs = places
        .iter()
        .flat_map(|a| places.iter().map(move |b| distance_km(a, b) as f32));
    Distances {
        count: places.len(),
        km: pairs.collect(),
    }
}

/// By the haversine formula.
fn distance_km(a: &Place, b: &Place) -> f64 {
    let half_lat = (b.latitude - a.latitude).to_radians() / 2.0;
    let half_lon = (b.longitude - a.longitude).to_radians() / 2.0;
    let cosines = a.latitude.to_radians().cos() * b.latitude.to_radians().cos();
    let h = half_lat.sin().powi(2) + cosines * half_lon.sin().powi(2);
    2.0 * EARTH_RADIUS_KM * h.sqrt().min(1.0).asin()
}

#[cfg(test)]
pub(crate) fn place(name: &str, latitude: f64, longitude: f64) -> Place {
    Place {
        name: name.into(),
        latitude,
        longitude,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_on_earth() {
        let (berlin, paris) = (
            place("Berlin", 52.52, 13.405),
            place("Paris", 48.8566, 2.3522),
        );
        assert!((distance_km(&berlin, &paris) - 878.0).abs() < 2.0);
        let antipode = place("antipode", -52.52, -166.595);
        assert!((distance_km(&berlin, &antipode) - 20_015.0).abs() < 1.0);
    }
}
