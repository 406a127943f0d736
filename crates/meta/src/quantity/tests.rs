use super::*;

fn q(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

/// Text sent, text answered, canonical form, value, milli-value.
#[test]
fn quantities_are_answered_as_upstream_does() {
    for (text, shown, canonical, value, milli) in [
        ("0", "0", "0", 0, 0),
        ("000", "0", "0", 0, 0),
        ("0Gi", "0", "0", 0, 0),
        ("+", "0", "0", 0, 0),
        ("-", "0", "0", 0, 0),
        (".", "0", "0", 0, 0),
        ("1", "1", "1", 1, 1000),
        ("1.", "1.", "1", 1, 1000),
        ("+1", "+1", "1", 1, 1000),
        ("-1", "-1", "-1", -1, -1000),
        ("01", "01", "1", 1, 1000),
        ("1.000", "1", "1", 1, 1000),
        ("1.500", "1.500", "1500m", 2, 1500),
        ("1.50", "1500m", "1500m", 2, 1500),
        ("0.5", "500m", "500m", 1, 500),
        (".5", "500m", "500m", 1, 500),
        ("-0.5", "-500m", "-500m", -1, -500),
        ("-1.5", "-1500m", "-1500m", -2, -1500),
        ("4.0", "4", "4", 4, 4000),
        ("1000m", "1", "1", 1, 1000),
        ("2500m", "2500m", "2500m", 3, 2500),
        ("1000", "1k", "1k", 1000, 1000000),
        ("1000000000", "1G", "1G", 1000000000, 1000000000000),
        ("1073741824", "1073741824", "1073741824", 1073741824, 1073741824000),
        ("1e3", "1e3", "1e3", 1000, 1000000),
        ("1E3", "1E3", "1e3", 1000, 1000000),
        ("1e+3", "1e+3", "1e3", 1000, 1000000),
        ("1e4", "10e3", "10e3", 10000, 10000000),
        ("1e-1", "100e-3", "100e-3", 1, 100),
        ("1000e-3", "1", "1", 1, 1000),
        ("1E", "1E", "1E", 1000000000000000000, 0),
        ("1k", "1k", "1k", 1000, 1000000),
        ("1Ki", "1Ki", "1Ki", 1024, 1024000),
        ("1024Mi", "1Gi", "1Gi", 1073741824, 1073741824000),
        ("1025Mi", "1025Mi", "1025Mi", 1074790400, 1074790400000),
        ("0001Mi", "0001Mi", "1Mi", 1048576, 1048576000),
        ("8Mi", "8Mi", "8Mi", 8388608, 8388608000),
        ("1.5Gi", "1536Mi", "1536Mi", 1610612736, 1610612736000),
        ("0.5Gi", "512Mi", "512Mi", 536870912, 536870912000),
        ("0.5Ki", "512", "512", 512, 512000),
        ("0.0001Ki", "102400u", "102400u", 1, 103),
        ("1Ti", "1Ti", "1Ti", 1099511627776, 1099511627776000),
        ("1Pi", "1Pi", "1Pi", 1125899906842624, 1125899906842624000),
        ("7Ei", "7Ei", "7Ei", 8070450532247928832, 8070450532247928832i64.wrapping_mul(1000)),
        ("8Ei", "9223372036854775807", "9223372036854775807", i64::MAX, -1000),
        ("-8Ei", "-9223372036854775807", "-9223372036854775807", -i64::MAX, 1000),
        ("100000000n", "100m", "100m", 1, 100),
        ("1n", "1n", "1n", 1, 1),
        ("0.1n", "1n", "1n", 1, 1),
        ("1e-2000000000", "1e-9", "1e-9", 1, 1),
        ("0.0000000001", "1n", "1n", 1, 1),
        ("1.0000000001", "1000000001n", "1000000001n", 2, 1001),
        ("0e-100", "0", "0", 0, 0),
        (
            "99999999999999999999",
            "99999999999999999999",
            "99999999999999999999",
            7766279631452241919,
            200376420520688664,
        ),
        ("100000000000000000000", "100E", "100E", 7766279631452241920, 200376420520689664),
        // A power of ten that has no suffix is not shown at all.
        ("1000E", "1", "1", 0, 0),
        ("1e2147483646", "1e2147483646", "1e2147483646", 0, 0),
        ("12345678901234567890e2147483640", "12345678901234567890e2147483640", "12345678901234567890e2147483640", 0, 0),
        ("1e4294967299", "1e4294967299", "1e3", 1000, 1000000),
    ] {
        let quantity = q(text);
        assert_eq!(quantity.to_string(), shown, "{text}");
        assert_eq!(quantity.canonical(), canonical, "{text}");
        assert_eq!(quantity.value(), value, "{text}");
        assert_eq!(quantity.milli_value(), milli, "{text}");
    }
}

#[test]
fn wrong_texts_have_upstreams_errors() {
    use QuantityError::*;
    for (text, want) in [
        ("", Format),
        ("abc", Format),
        ("1 ", Format),
        (" 1", Format),
        ("1gi", Format),
        ("1.2.3", Format),
        ("--1", Suffix),
        ("12e-1k", Format),
        ("1mm", Suffix),
        ("1e", Suffix),
        ("1ee5", Suffix),
        ("1KI", Format),
        ("1iK", Suffix),
        ("1k5", Suffix),
        ("1e99999999999999999999", Suffix),
        ("i", Suffix),
        (".e-10", Numeric),
        ("1\u{e9}", Format),
    ] {
        assert_eq!(Quantity::parse(text).map(|q| q.to_string()), Err(want), "{text:?}");
    }
}

#[test]
fn json_values_are_read() {
    for (value, want) in [
        (Value::from("1 "), "1"),
        (Value::from(1i64), "1"),
        (Value::from(0.5), "500m"),
        (Value::from(1000i64), "1k"),
        (Value::Null, "0"),
    ] {
        assert_eq!(Quantity::from_value(&value).unwrap().to_string(), want);
    }
    assert_eq!(Quantity::from_value(&Value::Bool(true)), Err(QuantityError::Format));
}

#[test]
fn comparison_is_by_value() {
    for (a, b, want) in [
        ("1", "1000m", Ordering::Equal),
        ("1Gi", "1073741824", Ordering::Equal),
        ("1Pi", "1125899906842624", Ordering::Equal),
        ("1", "1001m", Ordering::Less),
        ("-1", "1", Ordering::Less),
        ("-2", "-1", Ordering::Less),
        ("1e20", "1e19", Ordering::Greater),
        ("1e2147483647", "1", Ordering::Greater),
        ("-1e2147483647", "1", Ordering::Less),
        ("1n", "0", Ordering::Greater),
        ("0", "0Ki", Ordering::Equal),
        ("99999999999999999999", "99999999999999999998", Ordering::Greater),
        ("-99999999999999999999", "-99999999999999999998", Ordering::Less),
    ] {
        assert_eq!(q(a).cmp(&q(b)), want, "{a} {b}");
        assert_eq!(q(b).cmp(&q(a)), want.reverse(), "{b} {a}");
    }
}

#[test]
fn sums_and_differences() {
    for (a, b, sum, difference) in [
        ("1", "1", "2", "0"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1Gi", "0", "1Gi", "1Gi"),
        ("1Gi", "1Mi", "1025Mi", "1023Mi"),
        ("500m", "1", "1500m", "-500m"),
        ("1n", "1E", "1000000000000000000000000001n", "-999999999999999999999999999n"),
        ("9E", "9E", "18E", "0"),
        ("1Pi", "1Ki", "1099511627777Ki", "1099511627775Ki"),
        ("1e2147483647", "1n", "10e2147483646", "10e2147483646"),
        ("1", "1e3", "1001", "-999"),
        ("1Ki", "1", "1025", "1023"),
    ] {
        let mut left = q(a);
        left += &q(b);
        assert_eq!(left.to_string(), sum, "{a} + {b}");
        let mut left = q(a);
        left -= &q(b);
        assert_eq!(left.to_string(), difference, "{a} - {b}");
    }
}

#[test]
fn rounding_up_moves_away_from_zero() {
    for (text, scale, want, exact) in [
        ("1u", MILLI, "1m", false),
        ("0.0001", MILLI, "1m", false),
        ("-1u", MILLI, "-1m", false),
        ("1.", MILLI, "1.", true),
        ("1001m", 0, "2", false),
        ("999", 3, "1k", false),
        ("1Pi", MILLI, "1Pi", true),
        ("99999999999999999999.1", 0, "100E", false),
        ("0", 3, "0", true),
    ] {
        let mut quantity = q(text);
        assert_eq!((quantity.round_up(scale), quantity.to_string()), (exact, want.to_owned()), "{text}");
    }
}

#[test]
fn products_and_conversions() {
    let mut quantity = q("1500m");
    assert!(quantity.multiply(3));
    assert_eq!(quantity.to_string(), "4500m");
    assert!(!quantity.multiply(i64::MAX));
    assert_eq!(quantity.to_string(), "41505174165846491131500m");
    for (text, int, float) in [
        ("12", Some(12), 12.0),
        ("1k", Some(1000), 1000.0),
        ("1Ki", Some(1024), 1024.0),
        ("100m", None, 0.1),
        ("1Pi", None, 1125899906842624.0),
        ("1e30", None, 1e30),
    ] {
        assert_eq!(q(text).as_i64(), int, "{text}");
        let got = q(text).as_approximate_f64();
        assert!((got - float).abs() <= float.abs() * 1e-15, "{text}: {got}");
    }
    assert_eq!((-q("1Gi")).to_string(), "-1Gi");
}

#[test]
fn sizes_take_the_same_form_on_both_ways() {
    for power in 0..63 {
        for factor in [1, 3, 5, 1000, 1023, 1025] {
            let Some(value) = (1i64 << power).checked_mul(factor) else { continue };
            for value in [value, -value, value.wrapping_add(1), i64::MIN] {
                let short = Quantity::new(value, Format::BinarySi);
                let long = Quantity { amount: Amount::Decimal(Box::new(short.amount.decimal())), ..short.clone() };
                assert_eq!(short.canonical(), long.canonical(), "{value}");
                assert_eq!(short.to_string(), short.into_text(), "{value}");
            }
        }
    }
}
