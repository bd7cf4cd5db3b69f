//! Lists of finished batches, emptied for the next ones.

use tidegate_core::model::{Claim, EndedOperation};

use super::Reply;
use super::batch::SealedBatch;
use crate::carry::BoxedReport;

/// The most entries that a spare list keeps room for.
const SPARE_ROOM_MAX: usize = 1_024;

/// The emptied lists of a batch that is finished. The next batches use their memory again: lists of
/// this size would be returned to the system each time.
#[derive(Default)]
pub(crate) struct SpareLists {
    pub replies: Vec<Reply>,
    pub claims: Vec<Claim>,
    pub ended: Vec<EndedOperation>,
    pub reports: Vec<BoxedReport>,
}

impl SpareLists {
    /// Empties the lists of a finished batch; what one large batch needed is not kept.
    pub(crate) fn of(finished: SealedBatch) -> Self {
        fn emptied<T>(mut list: Vec<T>) -> Vec<T> {
            list.clear();
            list.shrink_to(SPARE_ROOM_MAX);
            list
        }
        let SealedBatch { replies, claims, ended, reports, .. } = finished;
        Self {
            replies: emptied(replies),
            claims: emptied(claims),
            ended: emptied(ended),
            reports: emptied(reports),
        }
    }
}
