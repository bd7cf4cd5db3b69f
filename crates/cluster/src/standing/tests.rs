//! Who may take part, by what is in the register and who answers.

use std::collections::BTreeSet;

use tidegate_core::Time;
use tidegate_store::log::Epoch;
use tidegate_store::nodes::Node;

use super::*;

const BEN: Me<'static> = Me { node: "ben", address: "ben:7400", placing: "aa", joined: false, owns: false };

fn sign(name: &str, leaving: bool, placing: Option<&str>) -> Sign {
    let node = Node { name: name.into(), address: format!("{name}:7400"), until: Time::ZERO };
    Sign { node, leaving, without: BTreeSet::new(), placing: placing.map(str::to_owned) }
}

fn found(own: Answered, others: &[(&str, Answered)]) -> Findings {
    let mut findings = Findings::default();
    findings.take(own, others.iter().map(|(name, met)| ((*name).to_owned(), met.clone())).collect());
    findings
}

fn nobody() -> Answered {
    Answered::Nobody("nobody answers there".into())
}

fn node(name: &str) -> Answered {
    Answered::Node { name: name.into(), differs: None }
}

fn owned_by(name: &str) -> BTreeMap<Partition, Tenancy> {
    let owner = Tenancy { partition: 0, node: name.into(), epoch: Epoch(1), until: Time::ZERO };
    BTreeMap::from([(0, owner)])
}

fn alone(me: &Me<'_>, own: Answered) -> Standing {
    judge(me, &[], &BTreeMap::new(), &found(own, &[]))
}

#[test]
fn a_node_that_does_not_answer_at_its_own_address_is_apart() {
    assert_eq!(judge(&BEN, &[], &BTreeMap::new(), &Findings::default()), Standing::New);
    assert_eq!(alone(&BEN, Answered::Here), Standing::Good);
    for (own, words) in [
        (nobody(), "ben does not reach itself at ben:7400, its advertise in [cluster]: nobody answers there"),
        (node("ann"), "ben:7400, where ben says that it is reached, is answered by ann"),
        (node("ben"), "is answered by another process of the same name"),
        (Answered::Refused, "is answered by somebody who refuses its secret"),
    ] {
        let standing = alone(&BEN, own);
        assert!(matches!(&standing, Standing::Apart(why) if why.contains(words)), "{standing:?}");
    }
}

/// A node at work that does not reach itself for a while may have lost its way to a name server: it goes on, and says so.
#[test]
fn a_node_that_takes_part_does_not_stop_because_nobody_answers() {
    let me = Me { joined: true, ..BEN };
    let mut findings = found(Answered::Here, &[]);
    for _ in 1..SILENCE_MAX {
        findings.take(nobody(), BTreeMap::new());
        assert_eq!(judge(&me, &[], &BTreeMap::new(), &findings), Standing::Good);
        assert_eq!(
            judge(&BEN, &[], &BTreeMap::new(), &findings),
            Standing::Good,
            "nor when it was forgotten"
        );
    }
    findings.take(nobody(), BTreeMap::new());
    assert!(matches!(judge(&BEN, &[], &BTreeMap::new(), &findings), Standing::Apart(_)));
    assert!(matches!(judge(&me, &[], &BTreeMap::new(), &findings), Standing::Doubtful(_)));
    assert!(matches!(alone(&me, node("ann")), Standing::Apart(_)), "a wrong answer is another thing");
    findings.take(Answered::Here, BTreeMap::new());
    assert_eq!(judge(&me, &[], &BTreeMap::new(), &findings), Standing::Good);
}

#[test]
fn only_a_refusal_of_a_node_that_is_there_keeps_another_out() {
    let ann = sign("ann", false, Some("aa"));
    let with = |met: Answered| found(Answered::Here, &[("ann", met)]);
    let signs = std::slice::from_ref(&ann);
    for harmless in [nobody(), node("ann"), node("somebody else")] {
        assert_eq!(judge(&BEN, signs, &BTreeMap::new(), &with(harmless)), Standing::Good);
    }
    let refused = judge(&BEN, signs, &BTreeMap::new(), &with(Answered::Refused));
    let words = "ann at ann:7400 refuses the secret of ben";
    assert!(matches!(&refused, Standing::Apart(why) if why.contains(words)), "{refused:?}");
    assert_eq!(judge(&BEN, &[], &BTreeMap::new(), &with(Answered::Refused)), Standing::Good, "it has gone");
}

/// OPS-7: of two nodes that place operations differently only one takes part, whichever way they meet.
#[test]
fn ops_7_of_two_that_place_differently_one_steps_back() {
    let here = |joined, owns| Me { joined, owns, ..BEN };
    let how = |me: &Me<'_>, other: Sign, owners: BTreeMap<_, _>| {
        judge(me, &[other], &owners, &found(Answered::Here, &[]))
    };
    let nobody_owns = BTreeMap::new;
    let mine = sign("ann", false, Some("aa"));
    assert_eq!(how(&BEN, mine, nobody_owns()), Standing::Good);
    assert_eq!(how(&BEN, sign("ann", false, None), nobody_owns()), Standing::Good, "older nodes do not say");
    let ann = |leaving| sign("ann", leaving, Some("bb"));
    let cleo = |leaving| sign("cleo", leaving, Some("bb"));
    // Whoever comes later stays away.
    for other in [ann(false), ann(true), cleo(false)] {
        let standing = how(&BEN, other, nobody_owns());
        let words = "place operations differently (aa here, bb there)";
        assert!(matches!(&standing, Standing::Apart(why) if why.contains(words)), "{standing:?}");
    }
    // Of two that come together the first by name waits, and the other goes.
    assert!(matches!(how(&BEN, cleo(true), nobody_owns()), Standing::Waits(_)));
    // Of two that are there the one that owns something stays.
    let is_apart = |me: &Me<'_>, other, owners| matches!(how(me, other, owners), Standing::Apart(_));
    assert!(is_apart(&here(true, false), ann(false), nobody_owns()));
    assert!(!is_apart(&here(true, false), cleo(false), nobody_owns()));
    assert!(is_apart(&here(true, false), cleo(false), owned_by("cleo")));
    assert!(!is_apart(&here(true, true), ann(false), nobody_owns()));
    assert!(is_apart(&here(true, true), ann(false), owned_by("ann")));
    assert!(!is_apart(&here(true, true), ann(true), owned_by("ann")), "it is about to go");
}
