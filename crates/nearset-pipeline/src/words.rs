//! Numbers for people.

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes with a unit, as disks and memory are sold.
pub fn bytes(number: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (number as f64, 0);
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{number} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// A probability: `97.9 %`, or with an exponent where it is tiny.
pub fn percent(rate: f64) -> String {
    let value = 100.0 * rate;
    match value {
        _ if rate.is_nan() => "unknown".to_owned(),
        0.0 => "0 %".to_owned(),
        value if value >= 10.0 => format!("{value:.1} %"),
        value if value >= 0.01 => format!("{value:.2} %"),
        value => format!("{value:.0e} %"),
    }
}

/// `2 h 3 min`, `4 min 5 s`, `1.2 s`.
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(3_400_000), "3.4 MB");
        assert_eq!(percent(0.979), "97.9 %");
        assert_eq!(percent(0.0123), "1.23 %");
        assert_eq!(percent(3e-9), "3e-7 %");
        assert_eq!(seconds(7384.0), "2 h 3 min");
    }
}
