//! Where servers alone are killed, only those who speak to the killed one may notice: every request that failed, every watch
//! that was cut and every probe that found a server not ready must be explained by an outage of that very server.

use crate::history::Moment;

/// A server was down from just before it was killed until it said that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    pub port: u16,
    pub start: Moment,
    pub end: Moment,
}

/// Something that a client did not get from a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub port: u16,
    /// When the connection was made: it may have been broken before it was used again.
    pub connected: Moment,
    pub end: Moment,
    pub what: String,
}

impl Failure {
    fn is_of(&self, outage: &Outage) -> bool {
        self.port == outage.port && self.connected <= outage.end && outage.start <= self.end
    }
}

/// Those that no outage explains, in words.
pub fn unexplained(failures: &[Failure], outages: &[Outage]) -> Vec<String> {
    let alone = failures.iter().filter(|failure| !outages.iter().any(|outage| failure.is_of(outage)));
    alone
        .map(|f| {
            let (from, to) = (f.connected / 1000, f.end / 1000);
            format!("Isolation: the server at port {} was up, but {} ({from} to {to} ms)", f.port, f.what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_killed_one_may_fail() {
        let outages = [Outage { port: 1, start: 100, end: 200 }];
        let failure = |port, connected, end| Failure { port, connected, end, what: "a get had no answer".to_owned() };
        for (failure, explained) in [
            (failure(1, 50, 100), true),
            (failure(1, 150, 160), true),
            (failure(1, 200, 300), true),
            // Used again after the outage, and broken by it.
            (failure(1, 10, 900), true),
            (failure(1, 10, 90), false),
            (failure(1, 210, 220), false),
            (failure(2, 150, 160), false),
        ] {
            assert_eq!(unexplained(std::slice::from_ref(&failure), &outages).is_empty(), explained, "{failure:?}");
        }
    }
}
