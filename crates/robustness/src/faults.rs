//! What is done to servers and etcd while clients work.

use crate::isolation::Outage;
use crate::load::Shared;
use crate::plan::{Plan, Store};
use crate::pressure::press;
use crate::proxy::Way;
use crate::site::{Site, signal};
use crate::wire::Api;
use kubelith_store::random::Random;
use rustix::process::{Resource, Signal};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// kill -9 of a server, which is started again.
    KillServer,
    /// Killed again while it starts, a few times.
    RestartLoop,
    /// SIGTERM and a start.
    RestartServer,
    /// SIGSTOP for a while.
    PauseServer,
    /// No file may grow: writes of the store fail.
    DiskFull,
    /// No more file descriptors.
    Descriptors,
    /// etcd's history goes, all but a few revisions.
    Compact,
    /// The same while a server is down: it comes back to a store without the history that its clients ask for.
    CompactWhileDown,
    KillMember,
    KillLeader,
    PauseMember,
    /// Connections between a server and members of etcd break.
    Cut,
    /// Nothing passes between them.
    Silence,
    Delay,
    /// The clock of a server jumps, forwards or back. Only where it is asked for: the clock stands still between jumps.
    ClockJump,
    /// A server is filled until it refuses. Only where it is asked for: servers have little memory then, and clients no privileges.
    MemoryPressure,
}

impl FaultKind {
    const ALL: [(&'static str, FaultKind); 16] = [
        ("kill", FaultKind::KillServer),
        ("restart-loop", FaultKind::RestartLoop),
        ("restart", FaultKind::RestartServer),
        ("pause", FaultKind::PauseServer),
        ("disk-full", FaultKind::DiskFull),
        ("descriptors", FaultKind::Descriptors),
        ("compact", FaultKind::Compact),
        ("compact-while-down", FaultKind::CompactWhileDown),
        ("kill-member", FaultKind::KillMember),
        ("kill-leader", FaultKind::KillLeader),
        ("pause-member", FaultKind::PauseMember),
        ("cut", FaultKind::Cut),
        ("silence", FaultKind::Silence),
        ("delay", FaultKind::Delay),
        ("clock", FaultKind::ClockJump),
        ("memory", FaultKind::MemoryPressure),
    ];

    pub fn parse(text: &str) -> Result<FaultKind, String> {
        let found = FaultKind::ALL.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
        let names = || FaultKind::ALL.map(|(name, _)| name).join(", ");
        found.ok_or_else(|| format!("unknown fault {text:?}: {}", names()))
    }

    pub fn name(self) -> &'static str {
        FaultKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Whether it takes one server down and touches nothing else.
    pub fn is_of_one_server(self) -> bool {
        matches!(self, FaultKind::KillServer | FaultKind::RestartLoop | FaultKind::RestartServer)
    }

    /// Those that a store survives: what is in memory is lost by a kill, and that is no fault.
    pub fn of(store: Store) -> Vec<FaultKind> {
        let kinds = match store {
            Store::Memory => &[FaultKind::PauseServer, FaultKind::Descriptors][..],
            Store::Embedded => &[
                FaultKind::KillServer,
                FaultKind::KillServer,
                FaultKind::KillServer,
                FaultKind::RestartLoop,
                FaultKind::RestartServer,
                FaultKind::PauseServer,
                FaultKind::DiskFull,
                FaultKind::Descriptors,
            ],
            Store::Etcd => &[
                FaultKind::KillServer,
                FaultKind::KillServer,
                FaultKind::RestartServer,
                FaultKind::PauseServer,
                FaultKind::Compact,
                FaultKind::CompactWhileDown,
                FaultKind::KillMember,
                FaultKind::KillLeader,
                FaultKind::KillLeader,
                FaultKind::PauseMember,
                FaultKind::Cut,
                FaultKind::Silence,
                FaultKind::Delay,
            ],
        };
        kinds.to_vec()
    }
}

/// How long something is kept away.
const SHORT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(1500));
/// A server that is killed while it starts gets so long before.
const STARTING: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(300));
const LOOP: usize = 4;
/// Revisions that a compaction leaves.
const KEPT: usize = 30;
const MEMBERS: usize = 3;
/// How far a clock jumps: less than a second, beyond the age of history, beyond the life of events and of tokens.
const JUMPS: [&str; 8] = ["300ms", "-700ms", "30s", "-45s", "7m", "-11m", "26h", "-26h"];

/// What was done, and how often; and what should not have been.
#[derive(Debug, Default)]
pub struct Injected {
    pub counts: BTreeMap<&'static str, usize>,
    pub problems: Vec<String>,
    pub outages: Vec<Outage>,
}

impl Injected {
    fn note(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Kills of servers and of members.
    pub fn kills(&self) -> usize {
        ["kill -9 of a server", "kill -9 of a member"].iter().filter_map(|what| self.counts.get(what)).sum()
    }
}

pub struct Injector<'a> {
    plan: &'a Plan,
    random: Random,
    site: &'a mut Site,
    shared: &'a Shared,
    injected: Injected,
}

impl<'a> Injector<'a> {
    pub fn new(plan: &'a Plan, site: &'a mut Site, shared: &'a Shared) -> Injector<'a> {
        Injector { plan, random: Random::new(plan.seed, u64::MAX), site, shared, injected: Injected::default() }
    }

    /// Injects until the time is over or enough was killed; everything is whole again then.
    pub fn run(mut self) -> Result<Injected, String> {
        let end = Instant::now() + self.plan.duration;
        let enough = |injected: &Injected| self.plan.kills.is_some_and(|kills| injected.kills() >= kills);
        let mut last = Instant::now();
        while Instant::now() < end && !enough(&self.injected) {
            let quiet = match self.plan.every {
                Some(every) => (last + every).saturating_duration_since(Instant::now()),
                None => self.random.between(self.plan.quiet.0, self.plan.quiet.1),
            };
            std::thread::sleep(quiet.min(end.saturating_duration_since(Instant::now())));
            self.revive()?;
            if self.plan.faults.is_empty() || Instant::now() >= end {
                continue;
            }
            last = Instant::now();
            let kind = self.random.pick(&self.plan.faults);
            self.inject(kind)?;
            self.wait_for_work();
        }
        self.revive()?;
        Ok(self.injected)
    }

    /// A fault upon a server that has done nothing since the last one proves little.
    fn wait_for_work(&self) {
        let (before, end) = (self.done(), Instant::now() + Duration::from_secs(5));
        while self.done() < before + self.plan.writers as u64 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn done(&self) -> u64 {
        self.shared.done.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Starts servers that have ended by themselves: those whose store failed.
    fn revive(&mut self) -> Result<(), String> {
        for index in 0..self.site.servers.len() {
            let server = &mut self.site.servers[index];
            if server.has_ended() {
                self.injected.note("ends of servers by themselves");
                server.kill();
                server.launch()?;
                server.wait_ready()?;
            }
        }
        Ok(())
    }

    fn inject(&mut self, kind: FaultKind) -> Result<(), String> {
        let index = self.random.below(self.site.servers.len());
        let pause = self.random.between(SHORT.0, SHORT.1);
        let start = self.shared.now();
        match kind {
            FaultKind::KillServer => self.kill(index)?,
            FaultKind::RestartLoop => {
                for _ in 0..1 + self.random.below(LOOP) {
                    self.site.servers[index].kill();
                    self.injected.note("kill -9 of a server");
                    self.site.servers[index].launch()?;
                    std::thread::sleep(self.random.between(STARTING.0, STARTING.1));
                }
                self.kill(index)?;
            }
            FaultKind::RestartServer => {
                if let Err(problem) = self.site.servers[index].stop() {
                    self.injected.problems.push(problem);
                }
                self.site.servers[index].launch()?;
                self.site.servers[index].wait_ready()?;
                self.injected.note("orderly restarts");
            }
            FaultKind::PauseServer => {
                let pid = self.site.servers[index].pid();
                signal(pid, Signal::STOP);
                std::thread::sleep(pause);
                signal(pid, Signal::CONT);
                self.injected.note("pauses of a server");
            }
            FaultKind::DiskFull => {
                let server = &self.site.servers[index];
                server.limit(Resource::Fsize, Some(server.data_size()));
                std::thread::sleep(pause);
                server.limit(Resource::Fsize, None);
                self.injected.note("full disks");
            }
            FaultKind::Descriptors => {
                let server = &self.site.servers[index];
                server.limit(Resource::Nofile, server.open_files().map(|open| open + 1));
                std::thread::sleep(pause);
                server.limit(Resource::Nofile, None);
                self.injected.note("exhausted file descriptors");
            }
            FaultKind::Compact => self.compact(),
            FaultKind::CompactWhileDown => {
                self.site.servers[index].kill();
                self.injected.note("kill -9 of a server");
                std::thread::sleep(pause);
                self.compact();
                self.site.servers[index].launch()?;
                self.site.servers[index].wait_ready()?;
            }
            FaultKind::KillMember | FaultKind::KillLeader | FaultKind::PauseMember => self.member(kind, pause),
            FaultKind::ClockJump => self.turn_clock(index),
            FaultKind::MemoryPressure => self.use_up_memory(index, pause),
            FaultKind::Cut | FaultKind::Silence | FaultKind::Delay => self.network(kind, index, pause),
        }
        if kind.is_of_one_server() {
            let (port, end) = (self.site.servers[index].port, self.shared.now());
            self.injected.outages.push(Outage { port, start, end });
        }
        Ok(())
    }

    fn kill(&mut self, index: usize) -> Result<(), String> {
        self.site.servers[index].kill();
        self.injected.note("kill -9 of a server");
        self.site.servers[index].launch()?;
        self.site.servers[index].wait_ready()
    }

    fn turn_clock(&mut self, index: usize) {
        let by = serde_json::json!({"advance": self.random.pick(&JUMPS)});
        let path = "/kubelith/v1/clock";
        match Api::new(self.site.servers[index].port).send("POST", path, "application/json", Some(&by)) {
            Some((200, _)) => self.injected.note("jumps of a clock"),
            other => self.injected.problems.push(format!("the clock cannot be turned: {other:?}")),
        }
    }

    fn use_up_memory(&mut self, index: usize, pause: Duration) {
        let pressed = press(&self.site.servers[index], pause);
        let counts = &mut self.injected.counts;
        *counts.entry("times that memory was short").or_default() += 1;
        *counts.entry("requests refused for it, of those who fill it").or_default() += pressed.refused;
        let most = counts.entry("MB that a server had at most then").or_default();
        *most = (pressed.most as usize >> 20).max(*most);
        self.injected.problems.extend(pressed.problems);
    }

    fn compact(&mut self) {
        let keep = self.random.below(KEPT) as i64;
        if self.site.compact(keep) {
            self.injected.note("compactions");
        }
    }

    fn member(&mut self, kind: FaultKind, pause: Duration) {
        let any = self.random.below(MEMBERS);
        let index = match kind {
            FaultKind::KillLeader => match self.site.leader() {
                Some(leader) => leader,
                None => return,
            },
            _ => any,
        };
        let Some(etcd) = self.site.etcd() else { return };
        if kind == FaultKind::PauseMember {
            let pid = etcd.pid(index);
            signal(pid, Signal::STOP);
            std::thread::sleep(pause);
            signal(pid, Signal::CONT);
            self.injected.note("pauses of a member");
            return;
        }
        etcd.kill(index);
        std::thread::sleep(pause);
        etcd.restart(index);
        self.injected.note("kill -9 of a member");
        if kind == FaultKind::KillLeader {
            self.injected.note("of these, leaders");
        }
    }

    fn network(&mut self, kind: FaultKind, index: usize, pause: Duration) {
        let (way, what) = match kind {
            FaultKind::Cut => (Way::Cut, "cuts of the network"),
            FaultKind::Silence => (Way::Silent, "silences of the network"),
            _ => (Way::Slow(pause / 10), "delays of the network"),
        };
        // To one member, or to all.
        let only = self.random.below(MEMBERS + 1);
        let server = &self.site.servers[index];
        server.ways(|member| if only == MEMBERS || only == member { way } else { Way::Open });
        std::thread::sleep(pause);
        server.ways(|_| Way::Open);
        self.injected.note(what);
    }
}
