//! Documents as they are kept: nothing until someone asks, then compressed, until nobody has asked for a while. With
//! every API on, all of them in both encodings take about two megabytes; custom resources can take many times that.

use super::upgraded::upgraded;
use super::words::Words;
use super::{Foreign, Library, Subject, gnostic, v2, v3};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use kubelith_codec::json;
use kubelith_meta::Value;
use kubelith_meta::time::wall_time;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::SystemTime;

/// A document, made on first use. Making one takes milliseconds: do it where blocking is allowed.
pub struct Kept {
    content: Content,
    /// Stays: the index of all documents shows it.
    stamp: OnceLock<Stamp>,
    json: Slot,
    protobuf: Slot,
}

/// One encoding of a document.
#[derive(Default)]
struct Slot {
    packed: RwLock<Option<Packed>>,
    /// Held while it is made: once, however many wait for it.
    making: Mutex<()>,
    /// Asked for since the last `drop_unused`.
    used: AtomicBool,
}

impl Slot {
    fn get(&self) -> Option<Packed> {
        let packed = self.packed.read().expect("no panic under this lock").clone();
        self.used.fetch_or(packed.is_some(), Ordering::Relaxed);
        packed
    }

    fn get_or_make(&self, make: impl FnOnce() -> Packed) -> Packed {
        // Who panicked while making it left nothing behind.
        let _making = self.making.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(packed) = self.get() {
            return packed;
        }
        let packed = make();
        *self.packed.write().expect("no panic under this lock") = Some(packed.clone());
        self.used.store(true, Ordering::Relaxed);
        packed
    }

    fn drop_unused(&self) {
        if !self.used.swap(false, Ordering::Relaxed) {
            *self.packed.write().expect("no panic under this lock") = None;
        }
    }
}

enum Content {
    /// A document of version 3.
    V3(Arc<Subject>),
    /// The document of version 2, of all subjects, and of what other servers serve.
    V2(Vec<Arc<Subject>>, Vec<Arc<Foreign>>),
    /// A document of version 3 that was made of another server's document of version 2.
    Upgraded(Packed),
}

/// By what a client knows that it has the document already.
#[derive(Debug, Clone)]
pub struct Stamp {
    /// SHA-512 of the JSON, in capitals; the protobuf has the same.
    pub hash: String,
    pub modified: SystemTime,
}

/// The bytes of a document, compressed.
#[derive(Debug, Clone)]
pub struct Packed {
    pub gzip: Bytes,
    /// Of what they unpack to.
    pub length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Protobuf,
}

impl Kept {
    pub fn v3(subject: Subject) -> Kept {
        Kept::new(Content::V3(Arc::new(subject)))
    }

    pub fn v2(subjects: Vec<Arc<Subject>>, foreign: Vec<Arc<Foreign>>) -> Kept {
        Kept::new(Content::V2(subjects, foreign))
    }

    /// From a document of version 2.
    pub fn upgraded(document: &Value) -> Kept {
        let mut digest = Digest::new(packer());
        digest.write_all(&json::to_vec(&upgraded(document))).expect("memory takes all");
        let length = digest.length;
        let (packer, stamp) = digest.stamp();
        let kept = Kept::new(Content::Upgraded(Packed { gzip: finish(packer), length }));
        kept.stamp.get_or_init(|| stamp);
        kept
    }

    fn new(content: Content) -> Kept {
        Kept { content, stamp: OnceLock::new(), json: Slot::default(), protobuf: Slot::default() }
    }

    pub fn subject(&self) -> Option<&Arc<Subject>> {
        match &self.content {
            Content::V3(subject) => Some(subject),
            Content::V2(..) | Content::Upgraded(_) => None,
        }
    }

    /// The stamp if it was made already.
    pub fn known_stamp(&self) -> Option<&Stamp> {
        self.stamp.get()
    }

    /// The document if it is there.
    pub fn known(&self, encoding: Encoding) -> Option<(&Stamp, Packed)> {
        Some((self.stamp.get()?, self.slot(encoding).get()?))
    }

    #[cfg(test)]
    pub fn has(&self, encoding: Encoding) -> bool {
        self.slot(encoding).packed.read().expect("no panic under this lock").is_some()
    }

    /// Drops what nobody asked for since the last call.
    pub fn drop_unused(&self) {
        self.json.drop_unused();
        self.protobuf.drop_unused();
    }

    /// The stamp; the document itself is written for it, but not kept.
    pub fn stamp(&self, library: &Library, words: &Words) -> &Stamp {
        self.stamp.get_or_init(|| {
            let mut digest = Digest::new(io::sink());
            self.write_json(library, words, &mut digest).expect("a sink takes all");
            digest.stamp().1
        })
    }

    pub fn make(&self, encoding: Encoding, library: &Library) -> (&Stamp, Packed) {
        let packed = self.slot(encoding).get_or_make(|| {
            let words = Words::load();
            match encoding {
                Encoding::Json => {
                    let mut digest = Digest::new(packer());
                    self.write_json(library, &words, &mut digest).expect("memory takes all");
                    let length = digest.length;
                    let (packer, stamp) = digest.stamp();
                    self.stamp.get_or_init(|| stamp);
                    Packed { gzip: finish(packer), length }
                }
                Encoding::Protobuf => {
                    self.stamp(library, &words);
                    let bytes = self.protobuf_bytes(library, &words);
                    let mut packer = packer();
                    packer.write_all(&bytes).expect("memory takes all");
                    Packed { gzip: finish(packer), length: bytes.len() }
                }
            }
        });
        (self.stamp.get().expect("made before the document is"), packed)
    }

    fn slot(&self, encoding: Encoding) -> &Slot {
        match encoding {
            Encoding::Json => &self.json,
            Encoding::Protobuf => &self.protobuf,
        }
    }

    fn write_json(&self, library: &Library, words: &Words, out: &mut dyn Write) -> io::Result<()> {
        match &self.content {
            Content::V3(subject) => v3::Document::new(subject, library, words).write_json(out),
            Content::V2(subjects, foreign) => v2::Document::new(subjects, library, words).with(foreign).write_json(out),
            Content::Upgraded(packed) => out.write_all(&packed.unpack()),
        }
    }

    fn protobuf_bytes(&self, library: &Library, words: &Words) -> Vec<u8> {
        match &self.content {
            Content::V3(subject) => v3::Document::new(subject, library, words).protobuf(),
            Content::V2(subjects, foreign) => v2::Document::new(subjects, library, words).with(foreign).protobuf(),
            Content::Upgraded(packed) => {
                let document = json::parse(&packed.unpack()).expect("we wrote it");
                gnostic::v3::protobuf(&document)
            }
        }
    }
}

impl Packed {
    pub fn unpack(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(self.length);
        GzDecoder::new(&self.gzip[..]).read_to_end(&mut bytes).expect("we packed it");
        bytes.into()
    }
}

fn packer() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Compression::default())
}

fn finish(packer: GzEncoder<Vec<u8>>) -> Bytes {
    let mut bytes = packer.finish().expect("memory takes all");
    bytes.shrink_to_fit();
    bytes.into()
}

/// Hashes what is written on its way.
struct Digest<W> {
    inner: W,
    context: aws_lc_rs::digest::Context,
    length: usize,
}

impl<W: Write> Digest<W> {
    fn new(inner: W) -> Digest<W> {
        Digest { inner, context: aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA512), length: 0 }
    }

    fn stamp(self) -> (W, Stamp) {
        let mut hash = String::with_capacity(128);
        for byte in self.context.finish().as_ref() {
            write!(hash, "{byte:02X}").expect("a string takes all");
        }
        (self.inner, Stamp { hash, modified: wall_time() })
    }
}

impl<W: Write> Write for Digest<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write_all(bytes)?;
        self.context.update(bytes);
        self.length += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
