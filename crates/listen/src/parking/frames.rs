//! HTTP/2 frames, as far as parking reads and writes them (RFC 9113).

pub const HEAD: usize = 9;
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Of a connection, before anybody says anything else.
pub const FIRST_WINDOW: i64 = 65_535;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

/// Of SETTINGS and PING.
pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIORITY: u8 = 0x20;

pub const HEADER_TABLE_SIZE: u16 = 1;
pub const INITIAL_WINDOW_SIZE: u16 = 4;
pub const MAX_FRAME_SIZE: u16 = 5;
/// The initial values.
pub const DEFAULT_HEADER_TABLE: u32 = 4096;
pub const DEFAULT_MAX_FRAME: u32 = 16_384;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl Head {
    pub fn read(bytes: [u8; HEAD]) -> Head {
        let [a, b, c, kind, flags, d, e, f, g] = bytes;
        Head {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([d, e, f, g]) & 0x7fff_ffff,
        }
    }

    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub fn is_ack(self) -> bool {
        self.kind == SETTINGS && self.has(ACK)
    }
}

pub fn head(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEAD] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    bytes.extend_from_slice(&head(payload.len(), kind, flags, stream));
    bytes.extend_from_slice(payload);
    bytes
}

pub fn settings(pairs: impl IntoIterator<Item = (u16, u32)>) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in pairs {
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, &payload)
}

pub fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

/// Stream 0 is the connection.
pub fn window_update(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// Without an error: streams after `last` were not begun.
pub fn goaway(last: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

pub fn read_settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.chunks_exact(6).map(|p| (u16::from_be_bytes([p[0], p[1]]), u32::from_be_bytes([p[2], p[3], p[4], p[5]])))
}

/// The increment of a WINDOW_UPDATE.
pub fn read_window(payload: &[u8]) -> Option<u32> {
    let bytes: [u8; 4] = payload.try_into().ok()?;
    Some(u32::from_be_bytes(bytes) & 0x7fff_ffff)
}
