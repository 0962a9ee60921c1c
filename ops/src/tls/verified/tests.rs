use super::entries::{BUDGET, MAX_CHAINS};
use super::*;
use crate::pki::{Authority, certificates_from_pem};
use crate::tls::{ClientCa, ClientCertificateError};

const DAY: Duration = Duration::from_secs(24 * 3600);
const MINUTE: Duration = Duration::from_secs(60);

type Chain = Vec<CertificateDer<'static>>;

fn authority() -> Authority {
    Authority::create("ca", DAY).unwrap()
}

fn ca(authority: &Authority) -> ClientCa {
    ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap()
}

fn chain(authority: &Authority, user: &str, lifetime: Duration) -> Chain {
    let pair = authority.issue_client(user, &["team"], lifetime).unwrap();
    certificates_from_pem(pair.certificate.as_bytes()).unwrap()
}

fn identity(chain: &Chain) -> Arc<PeerIdentity> {
    Arc::new(PeerIdentity::read(chain, SystemTime::now()).unwrap())
}

/// Identities of chains that differ in a number and are readable, but not signed. `longer` certificates are added to each.
fn numbered(authority: &Authority, longer: usize) -> impl Fn(usize) -> Arc<PeerIdentity> + use<> {
    let jane = chain(authority, "jane", DAY);
    move |number| {
        let mut identity = PeerIdentity::clone(&identity(&jane));
        identity.chain.extend(std::iter::repeat_n(jane[0].clone(), longer));
        let mut last = jane[0].to_vec();
        let end = last.len();
        last[end - 4..].copy_from_slice(&u32::try_from(number).unwrap().to_be_bytes());
        identity.chain.push(CertificateDer::from(last));
        Arc::new(identity)
    }
}

#[test]
fn a_chain_is_verified_once_in_a_while() {
    let (authority, now) = (authority(), SystemTime::now());
    let (ca, jane) = (ca(&authority), chain(&authority, "jane", DAY));
    let first = ca.verify(&jane, now).unwrap();
    assert_eq!(ca.verified().len(), 1);
    let known = |now| ca.verified().get(&jane, now);
    assert_eq!(known(now).as_deref(), Some(&first));
    assert_eq!(ca.verify(&jane, now).unwrap(), first);
    assert!(known(now + MAX_AGE - MINUTE).is_some() && known(now + MAX_AGE).is_none());
    assert!(known(now - MINUTE).is_none(), "the clock was set back");
    // If the chain is verified again, its age starts again.
    ca.verify(&jane, now + MAX_AGE).unwrap();
    assert!(known(now + MAX_AGE).is_some() && ca.verified().len() == 1);
}

#[test]
fn an_entry_does_not_outlive_a_certificate_of_its_chain() {
    let (authority, now) = (authority(), SystemTime::now());
    let ca = ca(&authority);
    let jane = chain(&authority, "jane", MINUTE);
    let end = ca.verify(&jane, now).unwrap().valid_until;
    assert!(end < now + MAX_AGE && ca.verified().get(&jane, end).is_none());
    let later = end + Duration::from_secs(2);
    assert!(matches!(ca.verify(&jane, later), Err(ClientCertificateError::Untrusted(_))));
    // The second certificate is not needed, but is part of the chain.
    let mut long = chain(&authority, "john", DAY);
    long.extend(jane);
    ca.verify(&long, now).unwrap();
    assert!(ca.verified().get(&long, now).is_some() && ca.verified().get(&long, end).is_none());
}

#[test]
fn another_chain_is_not_confused_with_a_cached_one() {
    let (authority, now) = (authority(), SystemTime::now());
    let (ca, jane) = (ca(&authority), chain(&authority, "jane", DAY));
    ca.verify(&jane, now).unwrap();
    let leaf = jane[0].to_vec();
    for position in [0, leaf.len() / 2, leaf.len() - 1] {
        let mut forged = leaf.clone();
        forged[position] ^= 1;
        let forged = [CertificateDer::from(forged)];
        assert!(ca.verified().get(&forged, now).is_none() && ca.verify(&forged, now).is_err());
    }
    // The same bytes, split elsewhere.
    let (one, other) = leaf.split_at(leaf.len() / 2);
    let cut = [CertificateDer::from(one), CertificateDer::from(other)];
    assert!(ca.verified().get(&cut, now).is_none() && ca.verify(&cut, now).is_err());
    let longer = [jane[0].clone(), jane[0].clone()];
    assert!(ca.verified().get(&longer, now).is_none());
    assert!(ca.verified().get(&[], now).is_none());
}

#[test]
fn two_chains_with_the_same_hash_are_distinguished() {
    let (authority, now, all) = (authority(), SystemTime::now(), Arc::<All>::default());
    let chains = VerifiedChains::among(Arc::clone(&all));
    let (jane, john) = (chain(&authority, "jane", DAY), chain(&authority, "john", DAY));
    let entry = Entry::new(identity(&jane), now..now + MINUTE, 1000);
    all.entries().insert(chains.authority, all.hasher.hash_one(&*jane), entry.clone());
    assert!(chains.get(&jane, now).is_some());
    all.entries().insert(chains.authority, all.hasher.hash_one(&*john), entry);
    assert!(chains.get(&john, now).is_none());
}

#[test]
fn each_authority_and_each_reload_begins_with_nothing() {
    let (ours, theirs, now) = (authority(), authority(), SystemTime::now());
    let jane = chain(&ours, "jane", DAY);
    let before = ca(&ours);
    before.verify(&jane, now).unwrap();
    let reloaded = ca(&ours);
    assert_eq!(reloaded.verified().len(), 0);
    let exchanged = ca(&theirs);
    assert!(matches!(exchanged.verify(&jane, now), Err(ClientCertificateError::Untrusted(_))));
    // Refusals are not cached.
    assert_eq!(exchanged.verified().len(), 0);
    assert!(before.verify(&chain(&theirs, "jane", DAY), now).is_err());
    assert_eq!(before.verified().len(), 1);
}

#[test]
fn the_cache_is_bounded_and_keeps_the_newest() {
    let (authority, now) = (authority(), SystemTime::now());
    let (all, jane) = (Arc::<All>::default(), chain(&authority, "jane", DAY));
    let (chains, numbered) = (VerifiedChains::among(Arc::clone(&all)), numbered(&authority, 0));
    let at = |number: usize| now + Duration::from_millis(u64::try_from(number).unwrap());
    for number in 0..MAX_CHAINS + 10 {
        chains.insert(numbered(number), at(number));
    }
    assert_eq!(chains.len(), MAX_CHAINS);
    let last = at(MAX_CHAINS + 10);
    assert!(chains.get(&numbered(9).chain, last).is_none());
    assert!(chains.get(&numbered(10).chain, last).is_some());
    // A known entry replaces itself, and expired entries are removed first.
    chains.insert(numbered(10), last);
    assert_eq!(chains.len(), MAX_CHAINS);
    chains.insert(identity(&jane), last + MAX_AGE);
    assert_eq!(chains.len(), 1);
    let mut long = PeerIdentity::clone(&identity(&jane));
    long.chain = std::iter::repeat_n(jane[0].clone(), 1 + MAX_BYTES / jane[0].len()).collect();
    chains.insert(Arc::new(long), last + MAX_AGE);
    assert_eq!(chains.len(), 1);
}

/// An authority without clients holds no memory, and one with many long chains takes none from others.
#[test]
fn authorities_share_one_budget() {
    let (authority, now, all) = (authority(), SystemTime::now(), Arc::<All>::default());
    let of_authority = || VerifiedChains::among(Arc::clone(&all));
    let (numbered, long) = (numbered(&authority, 0), numbered(&authority, 10));
    let small = of_authority();
    small.insert(numbered(0), now);
    let others: Vec<_> = (0..10).map(|_| of_authority()).collect();
    for (position, other) in others.iter().enumerate() {
        for number in 0..MAX_CHAINS {
            other.insert(long(position * MAX_CHAINS + number), now);
        }
        assert!(all.entries().bytes() <= BUDGET);
    }
    assert!(all.entries().bytes() > BUDGET / 2);
    assert!(small.get(&numbered(0).chain, now).is_some());
    let counts: Vec<_> = others.iter().map(VerifiedChains::len).collect();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    // Certificates differ in length by a few bytes.
    assert!(*least > most / 2 && *most < MAX_CHAINS, "{counts:?}");
    // A chain of any authority removes expired entries.
    small.insert(numbered(1), now + MAX_AGE);
    assert!(others.iter().all(|other| other.len() == 0) && small.len() == 1);
    // So does a reload.
    drop(small);
    assert_eq!(all.entries().bytes(), 0);
}

/// Only certificates that the verifier may have used count.
#[test]
fn a_chain_is_valid_until_the_first_of_its_certificates_ends() {
    let (authority, now) = (authority(), SystemTime::now());
    let ca = ca(&authority);
    let [day, hour, minute] = [DAY, 60 * MINUTE, MINUTE].map(|lifetime| chain(&authority, "jane", lifetime));
    let end = |chain: &Chain| ca.verify(chain, now).unwrap().valid_until;
    let ends = [end(&day), end(&hour), end(&minute)];
    let all = [day, hour, minute].concat();
    let until = |at| ca.verify(&all, at).unwrap().valid_until;
    assert_eq!(until(now), ends[2]);
    assert_eq!(until(now + 2 * MINUTE), ends[1]);
    assert_eq!(until(now + 120 * MINUTE), ends[0]);
}
