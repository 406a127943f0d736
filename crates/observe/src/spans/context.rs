//! W3C trace context: `traceparent: 00-<trace>-<span>-<flags>`.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanId(pub [u8; 8]);

/// A span and the trace that it is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: TraceId,
    pub span: SpanId,
    pub sampled: bool,
}

const SAMPLED: u8 = 1;

impl TraceId {
    /// Whether this trace is among `per_million` of a million, the same on every server.
    pub fn is_within(self, per_million: u32) -> bool {
        let bound = (u64::MAX >> 1) / 1_000_000 * u64::from(per_million.min(1_000_000));
        let random = u64::from_be_bytes(self.0[8..].try_into().unwrap_or_default()) >> 1;
        random < bound || per_million >= 1_000_000
    }
}

impl TraceContext {
    /// A new trace.
    pub fn root() -> TraceContext {
        TraceContext { trace: TraceId(random()), span: SpanId::random(), sampled: true }
    }

    /// A new span of the same trace.
    pub fn child(self) -> TraceContext {
        TraceContext { span: SpanId::random(), ..self }
    }

    /// Reads the header. Later versions may add fields behind those of this one.
    pub fn parse(header: &str) -> Option<TraceContext> {
        let mut parts = header.trim().split('-');
        let [version] = bytes(parts.next()?)?;
        let trace: [u8; 16] = bytes(parts.next()?)?;
        let span: [u8; 8] = bytes(parts.next()?)?;
        let [flags] = bytes(parts.next()?)?;
        let whole = version != 0 || parts.next().is_none();
        let valid = whole && version != 0xff && trace != [0; 16] && span != [0; 8];
        valid.then_some(TraceContext { trace: TraceId(trace), span: SpanId(span), sampled: flags & SAMPLED != 0 })
    }
}

impl SpanId {
    fn random() -> SpanId {
        SpanId(random())
    }
}

/// Every bit is random: sampling looks at them.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers");
    bytes
}

/// Two lower-case digits for each byte.
fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let digits = hex.as_bytes();
    if digits.len() != 2 * N || digits.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

impl fmt::Display for TraceContext {
    /// As the header has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace.0.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
        f.write_str("-")?;
        self.span.0.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = TraceContext::parse(good).unwrap();
        assert!(context.sampled);
        assert_eq!(context.to_string(), good);
        assert!(!TraceContext::parse(&good.replace("-01", "-00")).unwrap().sampled);
        assert!(TraceContext::parse(&format!("{}-more", good.replacen("00", "01", 1))).is_some());
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b71692033-01",
            "00-0af7651916cd43dd8448eb211c80319ä-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sampling_is_by_the_trace_and_even() {
        // Ids spread evenly over all that there are.
        let id = |n: u64| {
            let mut id = [7; 16];
            id[8..].copy_from_slice(&(n * (u64::MAX / 1000)).to_be_bytes());
            TraceId(id)
        };
        for (per_million, taken) in [(0, 0), (250_000, 250), (500_000, 500), (1_000_000, 1000)] {
            let count = (0..1000).filter(|n| id(*n).is_within(per_million)).count();
            assert!(count.abs_diff(taken) <= 1, "{per_million}: {count}");
        }
        assert_ne!(TraceContext::root(), TraceContext::root());
    }
}
