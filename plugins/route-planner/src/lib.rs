//! A tool that finds a short way through many places. It may compute for a minute, says how far it is, and stops when nobody
//! waits any more.

mod anneal;
mod geo;

use anneal::Search;
use geo::Place;
use longshore_plugin::{Error, Json, Result, progress, stop_if_cancelled, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Finds a short order in which to visit places on earth, starting at the first one. Distances are as the crow flies.
/// More effort finds a shorter way and takes longer: roughly a second for each.
#[derive(Deserialize, JsonSchema)]
struct PlanRoute {
    /// The places to visit; the way starts at the first.
    #[schemars(length(min = 2, max = 1000))]
    places: Vec<Place>,
    /// Whether the way leads back to the first place; true if nothing is said.
    round_trip: Option<bool>,
    /// How long to search, from 1 to 60; 5 if nothing is said.
    #[schemars(range(min = 1, max = 60))]
    effort: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Route {
    /// The names of the places in the order of the visit.
    order: Vec<String>,
    /// The length of the way, in kilometres.
    kilometres: f64,
    /// How much shorter that is than the order given, in per cent.
    saved_percent: f64,
}

/// Steps of the search between two looks at the outside: some tens of milliseconds.
const STEPS_PER_ROUND: u32 = 200_000;

/// Rounds for each unit of effort.
const ROUNDS_PER_EFFORT: u32 = 80;

fn plan_route(args: PlanRoute) -> Result<Json<Route>> {
    if args.places.len() < 2 {
        return Err(Error::msg("a way needs two places or more"));
    }
    let distances = geo::distances(&args.places);
    let rounds = args.effort.unwrap_or(5).clamp(1, 60) * ROUNDS_PER_EFFORT;
    let mut search = Search::new(distances, args.round_trip.unwrap_or(true));
    let before = search.best_length();
    for round in 0..rounds {
        stop_if_cancelled()?;
        search.round(1.0 - f64::from(round) / f64::from(rounds), STEPS_PER_ROUND);
        let message = format!("{:.1} km so far", search.best_length());
        progress(f64::from(round + 1), f64::from(rounds), &message);
    }
    let after = search.best_length();
    Ok(Json(Route {
        order: search
            .best()
            .iter()
            .map(|place| args.places[*place].name.clone())
            .collect(),
        kilometres: rounded(after),
        saved_percent: if before > 0.0 {
            rounded(100.0 * (before - after) / before)
        } else {
            0.0
        },
    }))
}

/// To one digit after the point: more would pretend to a precision that air-line distances do not have.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

longshore_plugin::plugin! {
    tools: [tool("plan_route", plan_route).title("Plan a route").read_only()]
}
