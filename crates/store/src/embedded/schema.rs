//! What is in the file: the tables, the state row and the form of a record.
//!
//! ```text
//! versions  (key, revision)      -> (create revision, or 0 where that revision deleted the key;
//!                                   deadline; bytes of the value)
//! records   revision             -> the record of that change: header, key, value
//! expiring  (deadline, revision) -> key
//! marks     revision             -> (time, superseded bytes so far); what ages history
//! meta      "format", "state"
//! ```
//! A change is written once, at the right edge of `records`; history is the records that a newer version of
//! the same key has superseded and that sweeping has not removed yet.

use super::checksum::xxh64;
use crate::error::{Result, StoreError};
use crate::model::{KeyValue, Revision};
use bytes::Bytes;
use redb::TableDefinition;

/// Create revision, deadline, bytes of the value: what a write needs of the version that it supersedes.
pub(super) type Version = (u64, u64, u32);

pub(super) const VERSIONS: TableDefinition<(&[u8], u64), Version> = TableDefinition::new("versions");
pub(super) const RECORDS: TableDefinition<u64, &[u8]> = TableDefinition::new("records");
pub(super) const EXPIRING: TableDefinition<(u64, u64), &[u8]> = TableDefinition::new("expiring");
pub(super) const MARKS: TableDefinition<u64, (u64, u64)> = TableDefinition::new("marks");
pub(super) const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");

pub(super) const FORMAT_KEY: &str = "format";
pub(super) const STATE_KEY: &str = "state";
/// Grows when an older release could misread the file. In the first form values were JSON or protobuf; from the second on objects
/// may be stored as they are served.
pub(super) const FORMAT_VERSION: u64 = 2;

/// The row that every commit rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateRow {
    pub revision: u64,
    /// Reads and watches below are refused.
    pub compacted: u64,
    /// Superseded records at or below are gone from the file.
    pub swept: u64,
    /// Bytes of records that were ever superseded: a counter that only grows, so that two marks tell how
    /// much history lies between them.
    pub superseded: u64,
    /// Live keys.
    pub keys: u64,
}

impl StateRow {
    /// A new store is at revision 1, as a new etcd is: 0 stays free to mean "none".
    pub const NEW: StateRow = StateRow { revision: 1, compacted: 0, swept: 0, superseded: 0, keys: 0 };

    pub fn encode(&self) -> [u8; 40] {
        let mut out = [0; 40];
        let fields = [self.revision, self.compacted, self.swept, self.superseded, self.keys];
        for (slot, field) in out.chunks_exact_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<StateRow> {
        if bytes.len() != 40 {
            return Err(StoreError::Corrupt(format!("the state row has {} bytes", bytes.len())));
        }
        let field = |i: usize| u64_at(bytes, i * 8);
        let row =
            StateRow { revision: field(0), compacted: field(1), swept: field(2), superseded: field(3), keys: field(4) };
        if row.revision > i64::MAX as u64 || row.compacted > row.revision || row.swept > row.compacted {
            return Err(StoreError::Corrupt(format!("the state row is impossible: {row:?}")));
        }
        Ok(row)
    }

    pub fn revision(&self) -> Revision {
        Revision(self.revision as i64)
    }

    pub fn compacted(&self) -> Revision {
        Revision(self.compacted as i64)
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// checksum 8, create revision 8, previous revision 8, deadline 8, key length 4.
const HEADER_BYTES: usize = 36;

/// A change of one key as stored. All integers little endian; the checksum covers what follows it and the
/// revision, so that a record that turns up at another revision is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// 0: this change deleted the key.
    pub create_revision: u64,
    /// The record that this one superseded; 0 where the key did not exist.
    pub previous: u64,
    /// Unix milliseconds after which the key expires; 0: never.
    pub deadline: u64,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl<'a> Record<'a> {
    pub fn encoded_len(&self) -> usize {
        HEADER_BYTES + self.key.len() + self.value.len()
    }

    /// `out` has `encoded_len` bytes.
    pub fn encode(&self, revision: u64, out: &mut [u8]) {
        let (header, body) = out.split_at_mut(HEADER_BYTES);
        header[8..16].copy_from_slice(&self.create_revision.to_le_bytes());
        header[16..24].copy_from_slice(&self.previous.to_le_bytes());
        header[24..32].copy_from_slice(&self.deadline.to_le_bytes());
        header[32..36].copy_from_slice(&(self.key.len() as u32).to_le_bytes());
        let (key, value) = body.split_at_mut(self.key.len());
        key.copy_from_slice(self.key);
        value.copy_from_slice(self.value);
        let checksum = xxh64(&out[8..]) ^ revision;
        out[..8].copy_from_slice(&checksum.to_le_bytes());
    }

    pub fn decode(revision: u64, bytes: &'a [u8]) -> Result<Record<'a>> {
        if bytes.len() >= HEADER_BYTES && u64_at(bytes, 0) == xxh64(&bytes[8..]) ^ revision {
            let key_len = u32::from_le_bytes(bytes[32..36].try_into().expect("4 bytes")) as usize;
            if let Some((key, value)) = bytes[HEADER_BYTES..].split_at_checked(key_len) {
                let record = Record {
                    create_revision: u64_at(bytes, 8),
                    previous: u64_at(bytes, 16),
                    deadline: u64_at(bytes, 24),
                    key,
                    value,
                };
                return Ok(record);
            }
        }
        Err(StoreError::Corrupt(format!("the record of revision {revision} does not match its checksum")))
    }

    pub fn is_deletion(&self) -> bool {
        self.create_revision == 0
    }

    /// The record as a version of its key; the value is copied out of the page.
    pub fn to_kv(self, key: Bytes, revision: u64) -> KeyValue {
        KeyValue {
            key,
            value: Bytes::copy_from_slice(self.value),
            create_revision: Revision(self.create_revision as i64),
            mod_revision: Revision(revision as i64),
            stale: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_notice_damage() {
        let record = Record { create_revision: 3, previous: 4, deadline: 5, key: b"/registry/a", value: b"value" };
        let mut bytes = vec![0; record.encoded_len()];
        record.encode(9, &mut bytes);
        assert_eq!(Record::decode(9, &bytes).unwrap(), record);
        assert!(Record::decode(10, &bytes).is_err(), "another revision");
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 1;
            assert!(Record::decode(9, &damaged).is_err(), "byte {i}");
        }
        for len in 0..bytes.len() {
            assert!(Record::decode(9, &bytes[..len]).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn impossible_state_rows_are_refused() {
        let row = StateRow { revision: 9, compacted: 5, swept: 4, superseded: 100, keys: 2 };
        assert_eq!(StateRow::decode(&row.encode()).unwrap(), row);
        for bad in
            [StateRow { compacted: 10, ..row }, StateRow { swept: 6, ..row }, StateRow { revision: u64::MAX, ..row }]
        {
            assert!(StateRow::decode(&bad.encode()).is_err(), "{bad:?}");
        }
        assert!(StateRow::decode(b"short").is_err());
    }
}
