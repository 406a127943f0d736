//! Node ports: one bit each in a RangeAllocation that all servers of the cluster share, kube-apiservers as well.

use super::metrics::{PoolMetrics, Scope};
use super::view;
use kubelith_codec::{base64, json, proto};
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_registry::Objects;
use kubelith_schema::{Encoding, TypedSchema};
use kubelith_store::cache::Hub;
use kubelith_store::{Expect, StoreError};
use std::fmt;
use std::sync::Arc;

/// Ports from `base` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    pub base: u16,
    pub size: u32,
}

impl PortRange {
    fn offset(self, port: u16) -> Option<usize> {
        let offset = u32::from(port).checked_sub(self.base.into())?;
        (offset < self.size).then_some(offset as usize)
    }

    /// Ports at the start that are spared for those who ask for one by number, until the rest is taken.
    fn spared(self) -> u32 {
        if self.size <= 16 { 0 } else { (self.size / 32).clamp(16, 128) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            0 => Ok(()),
            size => write!(f, "{}-{}", self.base, u32::from(self.base) + size - 1),
        }
    }
}

#[derive(Debug)]
pub enum PortError {
    Full,
    Taken,
    NotInRange(PortRange),
    Store(String),
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortError::Full => write!(f, "range is full"),
            PortError::Taken => write!(f, "provided port is already allocated"),
            PortError::NotInRange(range) => {
                write!(f, "provided port is not in the valid range. The range of valid ports is {range}")
            }
            PortError::Store(why) => write!(f, "{why}"),
        }
    }
}

impl From<PortError> for Status {
    fn from(error: PortError) -> Status {
        Status::internal_error(error)
    }
}

pub struct NodePorts {
    range: PortRange,
    hub: Arc<Hub>,
    objects: Arc<Objects>,
    schema: TypedSchema,
    encoding: Encoding,
    metrics: Arc<PoolMetrics>,
    /// One change at a time within this server; other servers are met by compare-and-put.
    turn: tokio::sync::Mutex<()>,
}

impl NodePorts {
    pub fn new(
        range: PortRange,
        hub: Arc<Hub>,
        objects: Arc<Objects>,
        encoding: Encoding,
        metrics: Arc<PoolMetrics>,
    ) -> NodePorts {
        let kind = GroupVersionKind::new("", "v1", "RangeAllocation");
        let schema = kubelith_catalog::builtin().kind_schema(&kind).expect("the catalogue has RangeAllocation");
        NodePorts { range, hub, objects, schema, encoding, metrics, turn: tokio::sync::Mutex::new(()) }
    }

    /// Takes this port.
    pub async fn take(&self, port: u16) -> Result<(), PortError> {
        let offset = self.range.offset(port).ok_or(PortError::NotInRange(self.range))?;
        let taken = self.change(|bits| match bits.set(offset) {
            true => Ok(()),
            false => Err(PortError::Taken),
        });
        self.counted(Scope::Static, taken.await)
    }

    fn counted<T>(&self, scope: Scope, taken: Result<T, PortError>) -> Result<T, PortError> {
        self.metrics.port(scope, taken.as_ref().map(drop).map_err(drop));
        taken
    }

    /// Takes any port that is free, for this purpose.
    pub async fn take_any(&self, purpose: &[&str]) -> Result<u16, PortError> {
        let made_up = self.objects.resource("", "services").map(|r| r.made_up.clone()).unwrap_or_default();
        let random = made_up.bits(purpose);
        let PortRange { base, size } = self.range;
        let spared = self.range.spared();
        let taken = self.change(|bits| {
            let free = bits.any_free(spared, size, random).or_else(|| bits.any_free(0, spared, random));
            let free = free.ok_or(PortError::Full)?;
            bits.set(free);
            Ok(base + free as u16)
        });
        self.counted(Scope::Dynamic, taken.await)
    }

    /// All ports that are taken.
    pub async fn taken(&self) -> Result<Vec<u16>, PortError> {
        let (bits, _) = self.read().await?;
        let PortRange { base, size } = self.range;
        self.metrics.ports_seen(bits.len(), size);
        Ok((0..size as usize).filter(|offset| bits.get(*offset)).map(|offset| base + offset as u16).collect())
    }

    pub async fn has(&self, port: u16) -> Result<bool, PortError> {
        let Some(offset) = self.range.offset(port) else { return Ok(false) };
        let (bits, _) = self.read().await?;
        Ok(bits.get(offset))
    }

    /// Gives ports back. What cannot be given back is lost until the next repair; it is logged.
    pub async fn release(&self, ports: &[u16]) {
        let offsets: Vec<usize> = ports.iter().filter_map(|port| self.range.offset(*port)).collect();
        if offsets.is_empty() {
            return;
        }
        let released = self.change(|bits| {
            offsets.iter().for_each(|offset| bits.clear(*offset));
            Ok(())
        });
        if let Err(why) = released.await {
            tracing::error!(%why, ?ports, "release of node ports");
        }
    }

    fn key(&self) -> bytes::Bytes {
        format!("{}servicenodeports", self.hub.key_prefix("ranges")).into()
    }

    async fn read(&self) -> Result<(Bits, Expect), PortError> {
        let read = self.hub.store().get(self.key(), None).await.map_err(|e| PortError::Store(e.to_string()))?;
        let Some(kv) = read.item else { return Ok((self.in_use(), Expect::Absent)) };
        let object = match kv.value.starts_with(proto::PREFIX) {
            true => proto::from_slice(&kv.value, &self.schema),
            false => json::parse(&kv.value),
        };
        let object = object.map_err(|e| PortError::Store(e.to_string()))?;
        let expect = Expect::At(kv.mod_revision);
        if object.str_at(&["range"]) != self.range.to_string() {
            // The server was started with another range: what is in use is all that matters.
            return Ok((self.in_use(), expect));
        }
        let data = base64::decode(object.str_at(&["data"])).unwrap_or_default();
        Ok((Bits::from_big_endian(&data), expect))
    }

    /// The ports that services have now.
    fn in_use(&self) -> Bits {
        let mut bits = Bits::default();
        for service in self.objects.list("", "services", "") {
            for offset in view::all_node_ports(&service).into_iter().filter_map(|port| self.range.offset(port)) {
                bits.set(offset);
            }
        }
        bits
    }

    async fn change<T>(&self, change: impl Fn(&mut Bits) -> Result<T, PortError>) -> Result<T, PortError> {
        let _turn = self.turn.lock().await;
        loop {
            let (mut bits, expect) = self.read().await?;
            let done = change(&mut bits)?;
            let mut object = Value::from([("apiVersion", "v1"), ("kind", "RangeAllocation")]);
            object.set_at(&["metadata"], Value::object());
            object.set_at(&["range"], self.range.to_string().into());
            object.set_at(&["data"], base64::encode(&bits.to_big_endian()).into());
            let bytes = match self.encoding {
                Encoding::Protobuf => {
                    proto::to_vec(&object, &self.schema).map_err(|e| PortError::Store(e.to_string()))?
                }
                Encoding::Json => json::to_vec(&object),
            };
            match self.hub.store().put(self.key(), bytes.into(), expect, None).await {
                Ok(_) => {
                    self.metrics.ports_seen(bits.len(), self.range.size);
                    return Ok(done);
                }
                Err(StoreError::Conflict { .. }) => continue,
                Err(e) => return Err(PortError::Store(e.to_string())),
            }
        }
    }
}

/// A set of small numbers; bit `n` of the number that the reference stores is its member `n`.
#[derive(Debug, Default, PartialEq)]
struct Bits(Vec<u8>);

impl Bits {
    fn from_big_endian(data: &[u8]) -> Bits {
        Bits(data.iter().rev().copied().collect())
    }

    fn to_big_endian(&self) -> Vec<u8> {
        let used = self.0.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.0[..used].iter().rev().copied().collect()
    }

    fn len(&self) -> usize {
        self.0.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    fn get(&self, n: usize) -> bool {
        self.0.get(n / 8).is_some_and(|byte| byte & (1 << (n % 8)) != 0)
    }

    /// Whether it was not there before.
    fn set(&mut self, n: usize) -> bool {
        if self.get(n) {
            return false;
        }
        if self.0.len() <= n / 8 {
            self.0.resize(n / 8 + 1, 0);
        }
        self.0[n / 8] |= 1 << (n % 8);
        true
    }

    fn clear(&mut self, n: usize) {
        if let Some(byte) = self.0.get_mut(n / 8) {
            *byte &= !(1 << (n % 8));
        }
    }

    /// Some number from `first` to below `end` that is not there, from a random place on.
    fn any_free(&self, first: u32, end: u32, random: u64) -> Option<usize> {
        let size = end.checked_sub(first).filter(|size| *size > 0)? as usize;
        let start = (random % size as u64) as usize;
        (0..size).map(|step| first as usize + (start + step) % size).find(|n| !self.get(*n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_one_big_number() {
        let mut bits = Bits::default();
        assert!(bits.set(0) && bits.set(9) && !bits.set(9));
        assert_eq!(bits.to_big_endian(), [2, 1]);
        assert_eq!(Bits::from_big_endian(&[2, 1]), bits);
        bits.clear(9);
        assert_eq!(bits.to_big_endian(), [1]);
    }

    #[test]
    fn a_full_range_has_nothing_free() {
        let mut bits = Bits::default();
        let mut taken = Vec::new();
        while let Some(n) = bits.any_free(2, 5, kubelith_meta::random::random_bits()) {
            bits.set(n);
            taken.push(n);
        }
        assert_eq!(taken.len(), 3);
        assert!(taken.iter().all(|n| (2..5).contains(n)));
    }
}
