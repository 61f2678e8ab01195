//! Spending limits: `budget` in settings files, `budgets` in managed ones. Plain data.

/// Spending limits in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    pub chat: Option<f64>,
    pub day: Option<f64>,
    pub run: Option<f64>,
}
