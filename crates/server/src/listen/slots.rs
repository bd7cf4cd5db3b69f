//! The slots of connections, and which connection is evicted for a new one. Busy connections are
//! never closed for others; of the rest, those without any request so far go first, the oldest
//! before the others.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many quarters of all connections one address may have. This machine may have all of them,
/// because a reverse proxy on it brings the connections of all clients.
const ADDRESS_QUARTERS: usize = 3;

/// How many connections are accepted for health checks and operators when all others are busy.
const RESERVED_MAX: usize = 32;
/// How many of those one address may have.
const RESERVED_PER_ADDRESS_MAX: usize = 16;

/// The connections of one listener.
pub(crate) struct Slots {
    most: usize,
    reserved_max: usize,
    table: Mutex<SlotTable>,
    freed: Notify,
}

#[derive(Default)]
struct SlotTable {
    next: u64,
    /// In the order of their arrival.
    open: BTreeMap<u64, Arc<ConnectionState>>,
    usual: ConnectionCounts,
    reserved: ConnectionCounts,
}

/// The number of connections, in total and by address, without those that are closing.
#[derive(Default)]
struct ConnectionCounts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl ConnectionCounts {
    fn of(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or_default()
    }

    fn add(&mut self, address: IpAddr) {
        self.all += 1;
        *self.by_address.entry(address).or_default() += 1;
    }

    fn remove(&mut self, address: IpAddr) {
        self.all -= 1;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

/// The outcome of taking a slot.
pub(crate) enum SlotOutcome {
    Slot(Slot),
    /// Its address has its maximum, and all of its connections are busy.
    AddressFull,
}

/// The state of one connection.
struct ConnectionState {
    address: IpAddr,
    opened: Instant,
    is_reserved: bool,
    requests: AtomicUsize,
    has_asked: AtomicBool,
    /// When it last had a request, in milliseconds since it was opened.
    idle_since_ms: AtomicU64,
    /// Cancelled when it is evicted.
    evicted: CancellationToken,
}

/// The slot of a connection. It is freed when this is dropped and every request has ended.
pub(crate) struct Slot {
    state: Arc<ConnectionState>,
    held: SlotGuard,
}

/// Frees a slot on drop.
struct SlotGuard {
    slots: Arc<Slots>,
    number: u64,
}

impl Slots {
    /// Creates slots for `most` connections.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Self::with_reserve(most, 0)
    }

    /// The same, plus a reserve for health checks and operators when all are busy.
    pub(crate) fn new_with_reserve(most: usize) -> Arc<Self> {
        Self::with_reserve(most, RESERVED_MAX)
    }

    fn with_reserve(most: usize, reserved_max: usize) -> Arc<Self> {
        Arc::new(Self { most, reserved_max, table: Mutex::default(), freed: Notify::new() })
    }

    fn table(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot for a connection from this address.
    pub(crate) async fn take(self: &Arc<Self>, from: IpAddr) -> SlotOutcome {
        let address = network(from);
        loop {
            let freed = self.freed.notified();
            match self.try_take(address) {
                Some(taken) => return taken,
                None => freed.await,
            }
        }
    }

    fn try_take(self: &Arc<Self>, address: IpAddr) -> Option<SlotOutcome> {
        let mut table = self.table();
        let is_own_full = !address.is_loopback() && table.usual.of(address) >= self.per_address();
        let is_full = table.usual.all >= self.most;
        let has_room = match (is_own_full, is_full) {
            (true, _) => table.evict(|line| line.address == address),
            (false, true) => table.evict(|_| true),
            (false, false) => true,
        };
        if has_room {
            return Some(SlotOutcome::Slot(self.slot(&mut table, address, false)));
        }
        let reserved = &table.reserved;
        if reserved.all < self.reserved_max && reserved.of(address) < RESERVED_PER_ADDRESS_MAX {
            return Some(SlotOutcome::Slot(self.slot(&mut table, address, true)));
        }
        // Other addresses must not wait behind one that has its maximum.
        is_own_full.then_some(SlotOutcome::AddressFull)
    }

    fn per_address(&self) -> usize {
        (self.most / 4 * ADDRESS_QUARTERS).max(1)
    }

    fn slot(self: &Arc<Self>, table: &mut SlotTable, address: IpAddr, is_reserved: bool) -> Slot {
        let line = Arc::new(ConnectionState {
            address,
            opened: Instant::now(),
            is_reserved,
            requests: AtomicUsize::new(0),
            has_asked: AtomicBool::new(false),
            idle_since_ms: AtomicU64::new(0),
            evicted: CancellationToken::new(),
        });
        let number = table.next;
        table.next += 1;
        table.counts(is_reserved).add(address);
        table.open.insert(number, Arc::clone(&line));
        Slot { state: line, held: SlotGuard { slots: Arc::clone(self), number } }
    }

    /// Evicts one idle connection, if there is one.
    pub(crate) fn evict_one(&self) {
        self.table().evict(|_| true);
    }
}

impl SlotTable {
    fn counts(&mut self, is_reserved: bool) -> &mut ConnectionCounts {
        if is_reserved { &mut self.reserved } else { &mut self.usual }
    }

    /// Evicts the least needed of these connections; returns whether there was one.
    fn evict(&mut self, is_one_of: impl Fn(&ConnectionState) -> bool) -> bool {
        let idle = self.open.iter().filter(|(_, line)| {
            !line.is_reserved && line.is_idle() && !line.evicted.is_cancelled() && is_one_of(line)
        });
        let Some((_, line)) = idle.min_by_key(|(number, line)| (line.eviction_key(), **number)) else {
            return false;
        };
        line.evicted.cancel();
        let address = line.address;
        self.usual.remove(address);
        true
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut table = self.slots.table();
        if let Some(line) = table.open.remove(&self.number)
            && !line.evicted.is_cancelled()
        {
            table.counts(line.is_reserved).remove(line.address);
        }
        drop(table);
        self.slots.freed.notify_one();
    }
}

impl ConnectionState {
    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::SeqCst) == 0
    }

    /// The order of eviction: connections without any request first, then by their last request.
    fn eviction_key(&self) -> (bool, Instant) {
        (self.has_asked.load(Ordering::SeqCst), self.idle_since())
    }

    fn idle_since(&self) -> Instant {
        self.opened + Duration::from_millis(self.idle_since_ms.load(Ordering::SeqCst))
    }
}

impl Slot {
    /// Starts a request, which lasts until the returned guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Arc<RequestGuard> {
        self.state.has_asked.store(true, Ordering::SeqCst);
        self.state.requests.fetch_add(1, Ordering::SeqCst);
        Arc::new(RequestGuard(Arc::clone(self)))
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.state.is_reserved
    }

    /// Whether it has no request in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.state.is_idle()
    }

    pub(super) fn has_asked(&self) -> bool {
        self.state.has_asked.load(Ordering::SeqCst)
    }

    /// When it was opened.
    pub(super) fn opened(&self) -> Instant {
        self.state.opened
    }

    /// When it last had a request, or was opened.
    pub(super) fn idle_since(&self) -> Instant {
        self.state.idle_since()
    }

    /// Resolves when it is evicted.
    pub(super) async fn evicted(&self) {
        self.state.evicted.cancelled().await;
    }
}

/// A request in flight, until its response has been sent.
pub(crate) struct RequestGuard(Arc<Slot>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let line = &self.0.state;
        let open_ms = u64::try_from(line.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        line.idle_since_ms.store(open_ms, Ordering::SeqCst);
        line.requests.fetch_sub(1, Ordering::SeqCst);
        // It can be evicted now for a waiting connection.
        self.0.held.slots.freed.notify_one();
    }
}

/// What counts as one address: for IPv6 the network, because a host can have any number of
/// addresses in it.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests;
