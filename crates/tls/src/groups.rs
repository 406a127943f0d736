//! Two key exchanges that Go's TLS offers and rustls lacks, made of what its cryptographic library has: ECDH on
//! P-521, and ECDH on P-384 beside ML-KEM-1024.

use aws_lc_rs::agreement::{self, ECDH_P521, EphemeralPrivateKey, PublicKey, UnparsedPublicKey};
use aws_lc_rs::rand::SystemRandom;
use rustls::crypto::aws_lc_rs::kx_group::{MLKEM1024, SECP384R1};
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

/// ECDH on P-521 (secp521r1).
pub static SECP521R1: &dyn SupportedKxGroup = &P521;

/// ECDH on P-384 and ML-KEM-1024 side by side, for TLS 1.3 only: draft-ietf-tls-ecdhe-mlkem.
pub static SECP384R1MLKEM1024: &dyn SupportedKxGroup = &P384MlKem1024;

/// IANA's number of SecP384r1MLKEM1024, for which rustls has no name.
const SECP384R1MLKEM1024_ID: NamedGroup = NamedGroup::Unknown(4589);

const INVALID_SHARE: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// A point of P-521 as TLS has it: a byte that says "not compressed", and two numbers of 66 bytes.
const P521_POINT_BYTES: usize = 1 + 2 * 66;

/// The same of P-384. It comes first in shares and secrets, the part of ML-KEM after it.
const P384_POINT_BYTES: usize = 1 + 2 * 48;

#[derive(Debug)]
struct P521;

impl SupportedKxGroup for P521 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let private = EphemeralPrivateKey::generate(&ECDH_P521, &SystemRandom::new()).map_err(|_| GetRandomFailed)?;
        let public = private.compute_public_key().map_err(|_| GetRandomFailed)?;
        Ok(Box::new(StartedP521 { private, public }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }
}

struct StartedP521 {
    private: EphemeralPrivateKey,
    public: PublicKey,
}

impl ActiveKeyExchange for StartedP521 {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        // The library reads other forms of points as well, which TLS does not allow.
        if peer.len() != P521_POINT_BYTES || peer[0] != 4 {
            return Err(INVALID_SHARE);
        }
        let peer = UnparsedPublicKey::new(&ECDH_P521, peer);
        agreement::agree_ephemeral(self.private, peer, INVALID_SHARE, |secret| Ok(SharedSecret::from(secret)))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_ref()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }
}

#[derive(Debug)]
struct P384MlKem1024;

impl SupportedKxGroup for P384MlKem1024 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let (curve, lattice) = (SECP384R1.start()?, MLKEM1024.start()?);
        let public = [curve.pub_key(), lattice.pub_key()].concat();
        Ok(Box::new(StartedP384MlKem1024 { curve, lattice, public }))
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (curve, lattice) = peer.split_at_checked(P384_POINT_BYTES).ok_or(INVALID_SHARE)?;
        let curve = SECP384R1.start_and_complete(curve)?;
        let lattice = MLKEM1024.start_and_complete(lattice)?;
        Ok(CompletedKeyExchange {
            group: SECP384R1MLKEM1024_ID,
            pub_key: [curve.pub_key, lattice.pub_key].concat(),
            secret: both(&curve.secret, &lattice.secret),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        SECP384R1MLKEM1024_ID
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

struct StartedP384MlKem1024 {
    curve: Box<dyn ActiveKeyExchange>,
    lattice: Box<dyn ActiveKeyExchange>,
    public: Vec<u8>,
}

impl ActiveKeyExchange for StartedP384MlKem1024 {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let (curve, lattice) = peer.split_at_checked(P384_POINT_BYTES).ok_or(INVALID_SHARE)?;
        Ok(both(&self.curve.complete(curve)?, &self.lattice.complete(lattice)?))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        SECP384R1MLKEM1024_ID
    }
}

fn both(curve: &SharedSecret, lattice: &SharedSecret) -> SharedSecret {
    SharedSecret::from([curve.secret_bytes(), lattice.secret_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each half checks its own length, so that a share of the wrong length fails wherever it was cut.
    #[test]
    fn both_sides_get_the_same_secret() {
        for (group, client_share, server_share, secret) in
            [(SECP521R1, 133, 133, 66), (SECP384R1MLKEM1024, 97 + 1568, 97 + 1568, 48 + 32)]
        {
            let client = group.start().unwrap();
            assert_eq!((client.pub_key().len(), client.group()), (client_share, group.name()));
            let server = group.start_and_complete(client.pub_key()).unwrap();
            assert_eq!((server.pub_key.len(), server.group), (server_share, group.name()));
            let at_client = client.complete(&server.pub_key).unwrap();
            assert_eq!(at_client.secret_bytes(), server.secret.secret_bytes());
            assert_eq!(at_client.secret_bytes().len(), secret);
        }
    }

    #[test]
    fn wrong_shares_are_the_peers_mistake() {
        for group in [SECP521R1, SECP384R1MLKEM1024] {
            let share = group.start().unwrap().pub_key().to_vec();
            let mut compressed = share.clone();
            compressed[0] = 2;
            let mut off_the_curve = share.clone();
            off_the_curve[9] ^= 1;
            let longer = [&share[..], &[0]].concat();
            for wrong in [&[][..], &share[..share.len() - 1], &longer, &compressed, &off_the_curve] {
                assert!(matches!(group.start_and_complete(wrong), Err(INVALID_SHARE)), "{group:?}");
                assert!(matches!(group.start().unwrap().complete(wrong), Err(INVALID_SHARE)), "{group:?}");
            }
        }
    }
}
