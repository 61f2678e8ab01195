//! The rows, printed as they come, with their targets.

#[derive(Default)]
pub(crate) struct Table {
    rows: usize,
    missed: usize,
}

impl Table {
    pub(crate) fn row(&mut self, what: &str, unit: &str, value: f64, target: f64) {
        let verdict = if target.is_finite() {
            format!("target ≤ {target} {}", met(value <= target))
        } else {
            String::new()
        };
        self.push(format!("{what:<52} {value:>12.3} {unit:<4} {:>24} {verdict}", ""));
    }

    /// Smaller is better.
    pub(crate) fn pair(&mut self, what: &str, unit: &str, value: f64, floor: f64, target: f64) {
        let ratio = format!("floor {floor:.3}, ratio {:.2}", value / floor);
        self.push(format!(
            "{what:<52} {value:>12.3} {unit:<4} {ratio:>24} target ≤ {target:.3} {}",
            met(value <= target)
        ));
    }

    /// More is better.
    pub(crate) fn pair_more(&mut self, what: &str, unit: &str, value: f64, floor: f64, target: f64) {
        let ratio = format!("floor {floor:.0}, ratio {:.2}", value / floor);
        self.push(format!(
            "{what:<52} {value:>12.0} {unit:<4} {ratio:>24} target ≥ {target:.0} {}",
            met(value >= target)
        ));
    }

    /// Printed at once, because the benchmark takes minutes.
    fn push(&mut self, line: String) {
        println!("{line}");
        self.rows += 1;
        self.missed += usize::from(line.ends_with("MISSED"));
    }

    pub(crate) fn end(&self) {
        println!("\n{} rows, {} targets missed", self.rows, self.missed);
    }
}

fn met(good: bool) -> &'static str {
    if good { "met" } else { "MISSED" }
}
