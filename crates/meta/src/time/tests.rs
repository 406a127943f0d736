use super::*;

#[test]
fn times_are_read_and_written_in_utc() {
    for (text, seconds, micro) in [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z"),
        ("2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.500000Z"),
        ("2026-01-02T03:04:05.1234567891234Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z"),
        ("2026-01-02T3:04:05Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02T03:04:05+01:30", "2026-01-02T01:34:05Z", "2026-01-02T01:34:05.000000Z"),
        ("2026-12-31T23:30:00-01:00", "2027-01-01T00:30:00Z", "2027-01-01T00:30:00.000000Z"),
        ("2026-01-02T03:04:05+24:60", "2026-01-01T02:04:05Z", "2026-01-01T02:04:05.000000Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"),
        ("2000-02-29T12:00:00Z", "2000-02-29T12:00:00Z", "2000-02-29T12:00:00.000000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ("0000-01-01T00:00:00+01:00", "-0001-12-31T23:00:00Z", "-0001-12-31T23:00:00.000000Z"),
        ("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z", "10000-01-01T00:59:59.000000Z"),
    ] {
        let time = Time::parse(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((time.rfc3339(), time.rfc3339_micro()), (seconds.to_owned(), micro.to_owned()), "{text}");
    }
    assert!(Time::parse("0001-01-01T00:00:00Z").unwrap().is_zero());
    assert_eq!(Time::parse("2001-09-09T01:46:40Z").unwrap().unix_seconds(), 1_000_000_000);
}

#[test]
fn wrong_times_have_gos_errors() {
    const AS: &str = " as \"2006-01-02T15:04:05Z07:00\": cannot parse ";
    for (text, want) in [
        ("", format!("parsing time \"\"{AS}\"\" as \"2006\"")),
        ("x", format!("parsing time \"x\"{AS}\"x\" as \"2006\"")),
        ("2026", format!("parsing time \"2026\"{AS}\"\" as \"-\"")),
        ("2026/01/02", format!("parsing time \"2026/01/02\"{AS}\"/01/02\" as \"-\"")),
        ("2026-1-02", format!("parsing time \"2026-1-02\"{AS}\"1-02\" as \"01\"")),
        ("2026-01-02", format!("parsing time \"2026-01-02\"{AS}\"\" as \"T\"")),
        ("2026-01-02 03:04:05Z", format!("parsing time \"2026-01-02 03:04:05Z\"{AS}\" 03:04:05Z\" as \"T\"")),
        ("2026-01-02T03:04:05", format!("parsing time \"2026-01-02T03:04:05\"{AS}\"\" as \"Z07:00\"")),
        ("2026-01-02T03:04:05z", format!("parsing time \"2026-01-02T03:04:05z\"{AS}\"z\" as \"Z07:00\"")),
        ("2026-01-02T03:04:05+0100", format!("parsing time \"2026-01-02T03:04:05+0100\"{AS}\"+0100\" as \"Z07:00\"")),
        (
            "2026-01-02T03:04:05*01:00",
            format!("parsing time \"2026-01-02T03:04:05*01:00\"{AS}\"*01:00\" as \"Z07:00\""),
        ),
        ("2026-01-02T03:04:05.Z", format!("parsing time \"2026-01-02T03:04:05.Z\"{AS}\".Z\" as \"Z07:00\"")),
        ("2026-13-02T03:04:05Z", "parsing time \"2026-13-02T03:04:05Z\": month out of range".to_owned()),
        ("2026-02-29T03:04:05Z", "parsing time \"2026-02-29T03:04:05Z\": day out of range".to_owned()),
        ("2026-01-00T03:04:05Z", "parsing time \"2026-01-00T03:04:05Z\": day out of range".to_owned()),
        ("2026-01-02T24:04:05Z", "parsing time \"2026-01-02T24:04:05Z\": hour out of range".to_owned()),
        ("2026-01-02T03:60:05Z", "parsing time \"2026-01-02T03:60:05Z\": minute out of range".to_owned()),
        ("2026-01-02T03:04:60Z", "parsing time \"2026-01-02T03:04:60Z\": second out of range".to_owned()),
        (
            "2026-01-02T03:04:05+25:00",
            "parsing time \"2026-01-02T03:04:05+25:00\": time zone offset hour out of range".to_owned(),
        ),
        (
            "2026-01-02T03:04:05+01:61",
            "parsing time \"2026-01-02T03:04:05+01:61\": time zone offset minute out of range".to_owned(),
        ),
        ("2026-01-02T03:04:05Zx", "parsing time \"2026-01-02T03:04:05Zx\": extra text: \"x\"".to_owned()),
        ("é\"\\", format!("parsing time \"\\xc3\\xa9\\\"\\\\\"{AS}\"\\xc3\\xa9\\\"\\\\\" as \"2006\"")),
    ] {
        assert_eq!(Time::parse(text).unwrap_err().to_string(), want);
    }
}

#[test]
fn micro_times_need_six_digits() {
    assert_eq!(
        Time::parse_micro("2026-01-02T03:04:05.000001+01:00").unwrap().rfc3339_micro(),
        "2026-01-02T02:04:05.000001Z"
    );
    const AS: &str = "as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse";
    for (text, rest) in [
        ("2026-01-02T03:04:05Z", "\"Z\" as \".000000\""),
        ("2026-01-02T03:04:05.123Z", "\".123Z\" as \".000000\""),
        ("2026-01-02T03:04:05.123456789Z", "\"789Z\" as \"Z07:00\""),
    ] {
        let want = format!("parsing time \"{text}\" {AS} {rest}");
        assert_eq!(Time::parse_micro(text).unwrap_err().to_string(), want);
    }
}

#[test]
fn every_day_of_four_centuries_round_trips() {
    let mut previous = civil_from_days(-1);
    for days in 0..146_097 {
        let (year, month, day) = civil_from_days(days);
        assert_eq!(days_from_civil(year, month, day), days);
        assert!((year, month, day) > previous);
        previous = (year, month, day);
    }
    assert_eq!(previous, (2369, 12, 31));
}

#[test]
fn times_add_and_subtract() {
    let time = Time::from_unix_nanos(10, 600_000_000);
    assert_eq!(time + Duration::from_millis(500), Time::from_unix_nanos(11, 100_000_000));
    assert_eq!(time - Duration::from_millis(700), Time::from_unix_nanos(9, 900_000_000));
    assert_eq!(time + Duration::from_millis(-700), Time::from_unix_nanos(9, 900_000_000));
    assert_eq!(time.since(Time::from_unix(12)), Duration::from_millis(-1400));
    assert_eq!(time.truncate_to_seconds(), Time::from_unix(10));
    assert_eq!(
        Time::from(std::time::UNIX_EPOCH - std::time::Duration::from_millis(1)),
        Time::from_unix_nanos(-1, 999_000_000)
    );
}

#[test]
fn durations_read_and_print_as_in_go() {
    for (text, nanos, shown) in [
        ("0", 0, "0s"),
        ("-0", 0, "0s"),
        ("0s", 0, "0s"),
        ("1h", 3_600_000_000_000, "1h0m0s"),
        ("1h2m3.5s", 3_723_500_000_000, "1h2m3.5s"),
        ("90s", 90_000_000_000, "1m30s"),
        ("1.5h", 5_400_000_000_000, "1h30m0s"),
        ("-1.5s", -1_500_000_000, "-1.5s"),
        ("+5s", 5_000_000_000, "5s"),
        (".5s", 500_000_000, "500ms"),
        ("1.s", 1_000_000_000, "1s"),
        ("100ms", 100_000_000, "100ms"),
        ("1500us", 1_500_000, "1.5ms"),
        ("20µs", 20_000, "20µs"),
        ("20μs", 20_000, "20µs"),
        ("3ns", 3, "3ns"),
        ("1.0000000001s", 1_000_000_000, "1s"),
        ("0.3333333333333333333h", 1_200_000_000_000, "20m0s"),
        ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
        ("1s1s", 2_000_000_000, "2s"),
    ] {
        let duration = Duration::parse(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((duration.as_nanos(), duration.to_string()), (nanos, shown.to_owned()), "{text}");
    }
    for (text, want) in [
        ("", "time: invalid duration \"\""),
        ("-", "time: invalid duration \"-\""),
        ("3", "time: missing unit in duration \"3\""),
        ("1h3", "time: missing unit in duration \"1h3\""),
        (".s", "time: invalid duration \".s\""),
        ("s", "time: invalid duration \"s\""),
        ("1d", "time: unknown unit \"d\" in duration \"1d\""),
        ("1é", "time: unknown unit \"\\xc3\\xa9\" in duration \"1\\xc3\\xa9\""),
        ("1 s", "time: unknown unit \" s\" in duration \"1 s\""),
        ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
        ("3000000h", "time: invalid duration \"3000000h\""),
        ("99999999999999999999s", "time: invalid duration \"99999999999999999999s\""),
    ] {
        assert_eq!(Duration::parse(text).unwrap_err().to_string(), want);
    }
}

#[test]
fn ages_are_short() {
    const H: i64 = 3600;
    const D: i64 = 24 * H;
    for (seconds, long, short) in [
        (-2, "<invalid>", "<invalid>"),
        (-1, "0s", "0s"),
        (0, "0s", "0s"),
        (59, "59s", "59s"),
        (119, "119s", "1m"),
        (120, "2m", "2m"),
        (125, "2m5s", "2m"),
        (600, "10m", "10m"),
        (3 * H - 1, "179m", "2h"),
        (3 * H, "3h", "3h"),
        (3 * H + 60, "3h1m", "3h"),
        (8 * H, "8h", "8h"),
        (2 * D - 1, "47h", "1d"),
        (2 * D, "2d", "2d"),
        (2 * D + 5 * H, "2d5h", "2d"),
        (8 * D, "8d", "8d"),
        (2 * 365 * D - 1, "729d", "1y"),
        (2 * 365 * D, "2y", "2y"),
        (2 * 365 * D + 20 * D, "2y20d", "2y"),
        (8 * 365 * D, "8y", "8y"),
    ] {
        let duration = Duration::from_secs(seconds);
        assert_eq!((human_duration(duration), short_human_duration(duration)), (long.to_owned(), short.to_owned()));
    }
    assert_eq!(human_duration(Duration::from_millis(-1999)), "0s");
    assert_eq!(Time::from_unix(100).age(Time::from_unix(130)), "30s");
}

#[test]
fn a_test_clock_stands_still() {
    let clock = TestClock::new(Time::from_unix(5));
    clock.advance(Duration::from_secs(2));
    assert_eq!((clock.now(), clock.now()), (Time::from_unix(7), Time::from_unix(7)));
    clock.set(Time::UNIX_EPOCH);
    assert_eq!(clock.now(), Time::UNIX_EPOCH);
    assert!(SystemClock.now() > Time::from_unix(1_700_000_000));
}
