//! Tests of admission, by the records in the register and the handshakes.

use tidegate_core::Time;
use tidegate_store::log::Epoch;
use tidegate_store::nodes::NodeRecord;

use super::*;

const BEN: ThisNode<'static> =
    ThisNode { node: "ben", address: "ben:7400", placement_hash: "aa", joined: false, owns: false };

fn sign(name: &str, leaving: bool, placing: Option<&str>) -> Node {
    let at = NodeRecord::at(format!("{name}:7400"));
    let record = NodeRecord { leaving, placement_hash: placing.map(str::to_owned), ..at };
    Node { name: name.into(), record, until: Time::ZERO }
}

fn found(own: HandshakeOutcome, others: &[(&str, HandshakeOutcome)]) -> Findings {
    let mut findings = Findings::default();
    findings.record_round(own, others.iter().map(|(name, met)| ((*name).to_owned(), met.clone())).collect());
    findings
}

fn nobody() -> HandshakeOutcome {
    HandshakeOutcome::Nobody("nobody answers there".into())
}

fn node(name: &str) -> HandshakeOutcome {
    HandshakeOutcome::Node { name: name.into(), differs: None }
}

fn owned_by(name: &str) -> BTreeMap<Partition, PartitionOwner> {
    let owner = PartitionOwner { partition: 0, node: name.into(), epoch: Epoch(1), until: Time::ZERO };
    BTreeMap::from([(0, owner)])
}

fn alone(me: &ThisNode<'_>, own: HandshakeOutcome) -> Admission {
    admission_of(me, &[], &BTreeMap::new(), &found(own, &[]))
}

#[test]
fn a_node_that_does_not_answer_at_its_own_address_is_apart() {
    assert_eq!(admission_of(&BEN, &[], &BTreeMap::new(), &Findings::default()), Admission::New);
    assert_eq!(alone(&BEN, HandshakeOutcome::ThisProcess), Admission::Admitted);
    for (own, words) in [
        (nobody(), "ben cannot reach itself at ben:7400, its advertise in [cluster]: nobody answers there"),
        (node("ann"), "ben:7400, the advertised address of ben, is answered by ann"),
        (node("ben"), "is answered by another process of the same name"),
        (HandshakeOutcome::Refused, "is answered by a process that refuses its secret"),
    ] {
        let standing = alone(&BEN, own);
        assert!(matches!(&standing, Admission::Excluded(why) if why.contains(words)), "{standing:?}");
    }
}

/// A working node that does not reach itself for a while may have lost its name server: it
/// continues and reports the problem.
#[test]
fn a_node_that_takes_part_does_not_stop_because_nobody_answers() {
    let me = ThisNode { joined: true, ..BEN };
    let mut findings = found(HandshakeOutcome::ThisProcess, &[]);
    for _ in 1..SILENCE_MAX {
        findings.record_round(nobody(), BTreeMap::new());
        assert_eq!(admission_of(&me, &[], &BTreeMap::new(), &findings), Admission::Admitted);
        assert_eq!(
            admission_of(&BEN, &[], &BTreeMap::new(), &findings),
            Admission::Admitted,
            "nor when it was forgotten"
        );
    }
    findings.record_round(nobody(), BTreeMap::new());
    assert!(matches!(admission_of(&BEN, &[], &BTreeMap::new(), &findings), Admission::Excluded(_)));
    assert!(matches!(admission_of(&me, &[], &BTreeMap::new(), &findings), Admission::Doubtful(_)));
    assert!(matches!(alone(&me, node("ann")), Admission::Excluded(_)), "a wrong answer is another thing");
    findings.record_round(HandshakeOutcome::ThisProcess, BTreeMap::new());
    assert_eq!(admission_of(&me, &[], &BTreeMap::new(), &findings), Admission::Admitted);
}

#[test]
fn only_a_refusal_of_a_node_that_is_there_keeps_another_out() {
    let ann = sign("ann", false, Some("aa"));
    let with = |met: HandshakeOutcome| found(HandshakeOutcome::ThisProcess, &[("ann", met)]);
    let signs = std::slice::from_ref(&ann);
    for harmless in [nobody(), node("ann"), node("somebody else")] {
        assert_eq!(admission_of(&BEN, signs, &BTreeMap::new(), &with(harmless)), Admission::Admitted);
    }
    let refused = admission_of(&BEN, signs, &BTreeMap::new(), &with(HandshakeOutcome::Refused));
    let words = "ann at ann:7400 refuses the secret of ben";
    assert!(matches!(&refused, Admission::Excluded(why) if why.contains(words)), "{refused:?}");
    assert_eq!(
        admission_of(&BEN, &[], &BTreeMap::new(), &with(HandshakeOutcome::Refused)),
        Admission::Admitted,
        "it has gone"
    );
}

/// OPS-7: of two nodes that place operations differently only one joins, whichever way they meet.
#[test]
fn ops_7_of_two_that_place_differently_one_steps_back() {
    let here = |joined, owns| ThisNode { joined, owns, ..BEN };
    let how = |me: &ThisNode<'_>, other: Node, owners: BTreeMap<_, _>| {
        admission_of(me, &[other], &owners, &found(HandshakeOutcome::ThisProcess, &[]))
    };
    let nobody_owns = BTreeMap::new;
    let mine = sign("ann", false, Some("aa"));
    assert_eq!(how(&BEN, mine, nobody_owns()), Admission::Admitted);
    assert_eq!(
        how(&BEN, sign("ann", false, None), nobody_owns()),
        Admission::Admitted,
        "older nodes do not say"
    );
    let ann = |leaving| sign("ann", leaving, Some("bb"));
    let cleo = |leaving| sign("cleo", leaving, Some("bb"));
    // A node that comes later stays out.
    for other in [ann(false), ann(true), cleo(false)] {
        let standing = how(&BEN, other, nobody_owns());
        let words = "place operations differently (aa here, bb there)";
        assert!(matches!(&standing, Admission::Excluded(why) if why.contains(words)), "{standing:?}");
    }
    // Of two that join at the same time, the first by name waits and the other withdraws.
    assert!(matches!(how(&BEN, cleo(true), nobody_owns()), Admission::Waiting(_)));
    // Of two that have joined, the one that owns something stays.
    let is_apart =
        |me: &ThisNode<'_>, other, owners| matches!(how(me, other, owners), Admission::Excluded(_));
    assert!(is_apart(&here(true, false), ann(false), nobody_owns()));
    assert!(!is_apart(&here(true, false), cleo(false), nobody_owns()));
    assert!(is_apart(&here(true, false), cleo(false), owned_by("cleo")));
    assert!(!is_apart(&here(true, true), ann(false), nobody_owns()));
    assert!(is_apart(&here(true, true), ann(false), owned_by("ann")));
    assert!(!is_apart(&here(true, true), ann(true), owned_by("ann")), "it is about to go");
}
