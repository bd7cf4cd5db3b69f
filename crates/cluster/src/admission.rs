//! Whether a node may take part: a pure function of what is in the register and who answered. What speaks against it is
//! told in a sentence that names the nodes and the address. A node that is dead, or cannot be reached, speaks against
//! nobody.

use std::collections::BTreeMap;

use tidegate_core::id::Partition;
use tidegate_store::log::PartitionOwner;

use crate::host::HandshakeOutcome;
use crate::node_record::NodeRecord;

/// So often in a row a node that has reached itself before must not have done so until that counts.
const SILENCE_MAX: u32 = 3;

/// What the rounds of calls have found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Who answered at this node's own address, when it was last asked.
    own: Option<HandshakeOutcome>,
    /// Whether this node has been reached there, and nobody else since.
    has_reached: bool,
    /// How often in a row nobody answered.
    silence: u32,
    /// Who answered for the others, by name.
    pub others: BTreeMap<String, HandshakeOutcome>,
}

/// The node that asks.
pub(crate) struct ThisNode<'a> {
    pub node: &'a str,
    pub address: &'a str,
    pub placement_hash: &'a str,
    pub joined: bool,
    /// Whether it serves anything.
    pub owns: bool,
}

/// How a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Nothing was asked yet.
    New,
    /// Nothing speaks against it.
    Admitted,
    /// It takes part, and something is wrong that is no reason to stop.
    Doubtful(String),
    /// Somebody else who does not go with it is about to join, or to leave; it keeps its place in the line.
    Waiting(String),
    /// It takes no part.
    Excluded(String),
}

impl Findings {
    /// Takes in what a round has found.
    pub(crate) fn record_round(&mut self, own: HandshakeOutcome, others: BTreeMap<String, HandshakeOutcome>) {
        self.silence = if matches!(own, HandshakeOutcome::Nobody(_)) { self.silence + 1 } else { 0 };
        self.has_reached = match own {
            HandshakeOutcome::ThisProcess => true,
            HandshakeOutcome::Nobody(_) => self.has_reached,
            HandshakeOutcome::Node { .. } | HandshakeOutcome::Refused => false,
        };
        self.own = Some(own);
        self.others = others;
    }
}

impl Admission {
    /// Whether it may take part.
    pub(crate) const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted | Self::Doubtful(_))
    }

    /// What is wrong.
    pub(crate) fn into_problem(self) -> Option<String> {
        match self {
            Self::New | Self::Admitted => None,
            Self::Doubtful(why) | Self::Waiting(why) | Self::Excluded(why) => Some(why),
        }
    }
}

/// How a node stands.
pub(crate) fn admission_of(
    me: &ThisNode<'_>,
    signs: &[NodeRecord],
    owners: &BTreeMap<Partition, PartitionOwner>,
    findings: &Findings,
) -> Admission {
    let address = me.address;
    let doubt = match &findings.own {
        None => return Admission::New,
        Some(HandshakeOutcome::ThisProcess) => None,
        Some(HandshakeOutcome::Node { name, .. }) => {
            let who = if name == me.node { "another process of the same name" } else { &**name };
            return Admission::Excluded(format!(
                "{address}, where {} says that it is reached, is answered by {who}: give each node its own advertise in \
                 [cluster]",
                me.node
            ));
        }
        Some(HandshakeOutcome::Refused) => {
            return Admission::Excluded(format!(
                "{address}, where {} says that it is reached, is answered by somebody who refuses its secret: give each \
                 node its own advertise in [cluster], and all the same secret",
                me.node
            ));
        }
        // It may have stood still itself, just then.
        Some(HandshakeOutcome::Nobody(_)) if findings.has_reached && findings.silence < SILENCE_MAX => None,
        Some(HandshakeOutcome::Nobody(found)) => Some(format!(
            "{} does not reach itself at {address}, its advertise in [cluster]: {found}",
            me.node
        )),
    };
    if let Some(why) = &doubt
        && !me.joined
    {
        return Admission::Excluded(why.clone());
    }
    for other in signs.iter().filter(|sign| sign.node.name != me.node) {
        let Some(why) = incompatibility(me, other, findings.others.get(&other.node.name)) else { continue };
        match (me.joined, other.leaving) {
            (false, true) if *me.node < *other.node.name => return Admission::Waiting(why),
            (false, _) => return Admission::Excluded(why),
            (true, false) if is_first(other, me, owners) => return Admission::Excluded(why),
            // It is the other's turn to step back, and it says so itself.
            (true, _) => {}
        }
    }
    doubt.map_or(Admission::Admitted, Admission::Doubtful)
}

/// Why two nodes do not go together.
fn incompatibility(
    me: &ThisNode<'_>,
    other: &NodeRecord,
    answered: Option<&HandshakeOutcome>,
) -> Option<String> {
    let (name, at) = (&other.node.name, &other.node.address);
    if answered == Some(&HandshakeOutcome::Refused) {
        return Some(format!(
            "{name} at {at} refuses the secret of {}: token_env in [cluster] must give every node the same, or be set at none",
            me.node
        ));
    }
    // Older nodes do not say.
    let theirs = other.placement_hash.as_deref().filter(|theirs| *theirs != me.placement_hash)?;
    let differs = match answered {
        Some(HandshakeOutcome::Node { differs: Some(differs), .. }) => differs.clone(),
        _ => format!("{} here, {theirs} there", me.placement_hash),
    };
    Some(format!(
        "{} and {name} place operations differently ({differs}): spread must be the same on every node. Stop all, then \
         start all",
        me.node
    ))
}

/// Which of two nodes that take part and do not go together stays: the one that owns something, or else the first by name.
fn is_first(other: &NodeRecord, me: &ThisNode<'_>, owners: &BTreeMap<Partition, PartitionOwner>) -> bool {
    let owns = |node: &str| owners.values().any(|owner| owner.node == node);
    match (owns(&other.node.name), me.owns || owns(me.node)) {
        (true, false) => true,
        (false, true) => false,
        _ => *other.node.name < *me.node,
    }
}

#[cfg(test)]
mod tests;
