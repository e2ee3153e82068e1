//! Numbers formatted for reading.

/// Formats a count: `52,429`.
pub fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value <= -0.5 { format!("-{grouped}") } else { grouped }
}

/// Formats a value with `digits` significant digits, in plain notation from one in a million on: `0.0124`, `3.1e-9`.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    // The exponent is taken after rounding: 0.0996 with two digits is 0.10.
    let exponent: i32 = scientific.split('e').nth(1).and_then(|exponent| exponent.parse().ok()).unwrap_or(0);
    match exponent {
        ..-6 => scientific,
        _ if exponent >= digits as i32 => count(value),
        _ => format!("{value:.*}", (digits as i32 - 1 - exponent).max(0) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        assert_eq!(count(52_428.8), "52,429");
        assert_eq!(count(-1_000.0), "-1,000");
        assert_eq!(count(999.0), "999");
        assert_eq!(significant(0.124_236, 3), "0.124");
        assert_eq!(significant(0.0996, 2), "0.10");
        assert_eq!(significant(0.000_006, 2), "0.0000060");
        assert_eq!(significant(3.14e-9, 2), "3.1e-9");
        assert_eq!(significant(52_428.8, 3), "52,429");
        assert_eq!(significant(12.34, 3), "12.3");
        assert_eq!(significant(0.0, 3), "0");
    }
}
