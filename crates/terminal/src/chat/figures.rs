//! Numbers and money for people, in few columns.

pub(crate) fn money(dollars: f64) -> String {
    match dollars {
        0.0 => "$0.00".to_owned(),
        _ if dollars >= 0.1 => format!("${dollars:.2}"),
        // Never a nothing that is something.
        _ if dollars < 0.0001 => "<$0.0001".to_owned(),
        _ => format!("${dollars:.4}"),
    }
}

/// `950`, `12.3k`, `200k`, `1.2M`.
pub(crate) fn short(number: u64) -> String {
    let (value, unit) = match number {
        0..1000 => return number.to_string(),
        1000..1_000_000 => (number as f64 / 1e3, "k"),
        _ => (number as f64 / 1e6, "M"),
    };
    let text = if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (12_345, "12.3k"),
            (200_000, "200k"),
            (1_000_000, "1M"),
            (1_250_000, "1.2M"),
        ] {
            assert_eq!(short(number), text);
        }
        assert_eq!(money(0.0123), "$0.0123");
        assert_eq!(money(1.5), "$1.50");
    }
}
