//! Decides whether a node may join: a pure function of the records in the register and the
//! handshakes. An objection is a sentence that names the nodes and the address. A node that is dead
//! or unreachable excludes no other node.

use std::collections::BTreeMap;

use tidegate_core::id::Partition;
use tidegate_store::log::PartitionOwner;
use tidegate_store::nodes::Node;

use crate::host::HandshakeOutcome;

/// How many rounds in a row a node that has reached itself before must fail to do so until that
/// counts.
const SILENCE_MAX: u32 = 3;

/// The findings of the handshake rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Who responded at this node's own address in the last round.
    own: Option<HandshakeOutcome>,
    /// Whether this node has been reached there, and no other process since.
    has_reached: bool,
    /// The number of rounds in a row without a response.
    silence: u32,
    /// Who responded for the other nodes, by name.
    pub others: BTreeMap<String, HandshakeOutcome>,
}

/// The node that is judged.
pub(crate) struct ThisNode<'a> {
    pub node: &'a str,
    pub address: &'a str,
    pub placement_hash: &'a str,
    pub joined: bool,
    /// Whether it serves any partition.
    pub owns: bool,
}

/// The admission state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// No handshake was made yet.
    New,
    /// Nothing speaks against it.
    Admitted,
    /// The node is admitted, but something is wrong that is no reason to stop.
    Doubtful(String),
    /// An incompatible node is about to join or to leave; this node keeps its candidacy.
    Waiting(String),
    /// The node may not join.
    Excluded(String),
}

impl Findings {
    /// Records the findings of a round.
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
    /// Returns whether the node may join or stay.
    pub(crate) const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted | Self::Doubtful(_))
    }

    /// Returns the problem, if there is one.
    pub(crate) fn into_problem(self) -> Option<String> {
        match self {
            Self::New | Self::Admitted => None,
            Self::Doubtful(why) | Self::Waiting(why) | Self::Excluded(why) => Some(why),
        }
    }
}

/// Computes the admission of a node.
pub(crate) fn admission_of(
    me: &ThisNode<'_>,
    nodes: &[Node],
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
                "{address}, the advertised address of {}, is answered by {who}: give each node its own advertise in \
                 [cluster]",
                me.node
            ));
        }
        Some(HandshakeOutcome::Refused) => {
            return Admission::Excluded(format!(
                "{address}, the advertised address of {}, is answered by a process that refuses its secret: give each \
                 node its own advertise in [cluster], and all the same secret",
                me.node
            ));
        }
        // This node may have been paused itself just then.
        Some(HandshakeOutcome::Nobody(_)) if findings.has_reached && findings.silence < SILENCE_MAX => None,
        Some(HandshakeOutcome::Nobody(found)) => {
            Some(format!("{} cannot reach itself at {address}, its advertise in [cluster]: {found}", me.node))
        }
    };
    if let Some(why) = &doubt
        && !me.joined
    {
        return Admission::Excluded(why.clone());
    }
    for other in nodes.iter().filter(|node| node.name != me.node) {
        let Some(why) = incompatibility(me, other, findings.others.get(&other.name)) else { continue };
        match (me.joined, other.record.leaving) {
            (false, true) if *me.node < *other.name => return Admission::Waiting(why),
            (false, _) => return Admission::Excluded(why),
            (true, false) if is_first(other, me, owners) => return Admission::Excluded(why),
            // It is the other node's turn to step back, and it reports that itself.
            (true, _) => {}
        }
    }
    doubt.map_or(Admission::Admitted, Admission::Doubtful)
}

/// Explains why two nodes are incompatible.
fn incompatibility(me: &ThisNode<'_>, other: &Node, answered: Option<&HandshakeOutcome>) -> Option<String> {
    let (name, at) = (&other.name, &other.record.address);
    if answered == Some(&HandshakeOutcome::Refused) {
        return Some(format!(
            "{name} at {at} refuses the secret of {}: token_env in [cluster] must give every node the same, or be set at none",
            me.node
        ));
    }
    // Older nodes do not publish it.
    let theirs = other.record.placement_hash.as_deref().filter(|theirs| *theirs != me.placement_hash)?;
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

/// Decides which of two incompatible joined nodes stays: the one that owns something, or else the
/// first by name.
fn is_first(other: &Node, me: &ThisNode<'_>, owners: &BTreeMap<Partition, PartitionOwner>) -> bool {
    let owns = |node: &str| owners.values().any(|owner| owner.node == node);
    match (owns(&other.name), me.owns || owns(me.node)) {
        (true, false) => true,
        (false, true) => false,
        _ => *other.name < *me.node,
    }
}

#[cfg(test)]
mod tests;
