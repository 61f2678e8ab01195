//! Sums and histograms since the start of the program, as OTLP has them (cumulative).
//!
//! Invariant: the number of series is bounded; a name that would be one too many is not counted.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::encode::attribute;

const MOST_SERIES: usize = 2000;
/// As the conventions for generative AI have them.
const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const CUMULATIVE: u8 = 2;

/// The labels of a series.
pub(super) type Labels = Vec<(&'static str, String)>;

#[derive(Default)]
pub(super) struct Metrics {
    sums: BTreeMap<(Sum, Labels), f64>,
    histograms: BTreeMap<(Distribution, Labels), Histogram>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sum {
    Turns,
    ToolCalls,
    Cost,
    Dropped,
}

impl Sum {
    fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::Turns => ("dragoman.turns", "{turn}"),
            Self::ToolCalls => ("dragoman.tool.calls", "{call}"),
            Self::Cost => ("dragoman.cost", "USD"),
            Self::Dropped => ("dragoman.telemetry.dropped", "{signal}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Distribution {
    TurnDuration,
    ToolDuration,
    ModelDuration,
    TimeToFirstToken,
    Tokens,
}

impl Distribution {
    fn describe(self) -> (&'static str, &'static str, &'static [f64]) {
        match self {
            Self::TurnDuration => ("dragoman.turn.duration", "s", SECONDS),
            Self::ToolDuration => ("dragoman.tool.duration", "s", SECONDS),
            Self::ModelDuration => ("gen_ai.client.operation.duration", "s", SECONDS),
            Self::TimeToFirstToken => ("dragoman.model.time_to_first_token", "s", SECONDS),
            Self::Tokens => ("gen_ai.client.token.usage", "{token}", TOKENS),
        }
    }
}

struct Histogram {
    counts: Vec<u64>,
    sum: f64,
}

impl Metrics {
    pub(super) fn add(&mut self, sum: Sum, labels: Labels, amount: f64) {
        let key = (sum, labels);
        if self.has_room() || self.sums.contains_key(&key) {
            *self.sums.entry(key).or_default() += amount;
        }
    }

    /// Sets a sum that is kept elsewhere.
    pub(super) fn set(&mut self, sum: Sum, amount: f64) {
        self.sums.insert((sum, Vec::new()), amount);
    }

    pub(super) fn record(&mut self, distribution: Distribution, labels: Labels, value: f64) {
        let bounds = distribution.describe().2;
        let key = (distribution, labels);
        if !self.has_room() && !self.histograms.contains_key(&key) {
            return;
        }
        let empty = || Histogram { counts: vec![0; bounds.len() + 1], sum: 0.0 };
        let histogram = self.histograms.entry(key).or_insert_with(empty);
        let at = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
        histogram.counts[at] += 1;
        histogram.sum += value;
    }

    fn has_room(&self) -> bool {
        self.sums.len() + self.histograms.len() < MOST_SERIES
    }

    /// All series, at a time.
    pub(super) fn encode(&self, started: u64, now: u64) -> Vec<Value> {
        let point = |labels: &Labels| {
            let labels: Vec<Value> =
                labels.iter().map(|(key, value)| attribute(key, value.as_str())).collect();
            json!({
                "attributes": labels,
                "startTimeUnixNano": started.to_string(),
                "timeUnixNano": now.to_string(),
            })
        };
        let sums = self.sums.iter().map(|((sum, labels), amount)| {
            let (name, unit) = sum.describe();
            let mut point = point(labels);
            point["asDouble"] = (*amount).into();
            let data =
                json!({ "dataPoints": [point], "aggregationTemporality": CUMULATIVE, "isMonotonic": true });
            json!({ "name": name, "unit": unit, "sum": data })
        });
        let histograms = self.histograms.iter().map(|((distribution, labels), histogram)| {
            let (name, unit, bounds) = distribution.describe();
            let mut point = point(labels);
            point["count"] = histogram.counts.iter().sum::<u64>().to_string().into();
            point["sum"] = histogram.sum.into();
            point["bucketCounts"] = histogram.counts.iter().map(u64::to_string).collect();
            point["explicitBounds"] = bounds.iter().copied().collect();
            let data = json!({ "dataPoints": [point], "aggregationTemporality": CUMULATIVE });
            json!({ "name": name, "unit": unit, "histogram": data })
        });
        sums.chain(histograms).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_their_buckets_and_series_are_bounded() {
        let mut metrics = Metrics::default();
        for value in [0.005, 0.3, 1000.0] {
            metrics.record(Distribution::TurnDuration, Vec::new(), value);
        }
        let encoded = metrics.encode(1, 2);
        let point = &encoded[0]["histogram"]["dataPoints"][0];
        assert_eq!((&point["count"], &point["bucketCounts"][0]), (&json!("3"), &json!("1")));
        assert_eq!(point["bucketCounts"].as_array().map(Vec::len), Some(SECONDS.len() + 1));
        assert_eq!(point["bucketCounts"][SECONDS.len()], "1");
        for number in 0..2 * MOST_SERIES {
            metrics.add(Sum::ToolCalls, vec![("gen_ai.tool.name", number.to_string())], 1.0);
        }
        metrics.add(Sum::ToolCalls, vec![("gen_ai.tool.name", "0".into())], 1.0);
        let encoded = metrics.encode(1, 2);
        assert_eq!(encoded.len(), MOST_SERIES);
        assert_eq!(encoded[0]["sum"]["dataPoints"][0]["asDouble"], 2.0, "known series go on");
    }
}
