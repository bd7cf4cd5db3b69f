"""Client for Tidegate: calls to other people's APIs, accepted once, in order, within limits."""

from ._async_client import AsyncClient
from ._client import Client
from ._entities import Entity, EntityOptions, EventOptions, Source
from ._errors import (
    ApiError,
    LeaseLostError,
    NoResponseError,
    OperationCanceledError,
    OperationError,
    OperationFailedError,
    OutcomeUnknownError,
    Problem,
    TidegateError,
    WaitTimeoutError,
)
from ._events import Event
from ._leases import AsyncLease, Lease
from ._limits import Reservation, Settled
from ._types import (
    Accepted,
    BucketCost,
    Callback,
    Completed,
    Completion,
    Conditions,
    Fault,
    Figures,
    Group,
    HttpRequest,
    Operation,
    Poll,
    Result,
    State,
    Submission,
    Why,
)
from ._work import Alternative, AwaitedJob, Awaiting, Job, JobError
from ._worker import AsyncWorker, Worker

__all__ = [
    "Accepted",
    "Alternative",
    "ApiError",
    "AsyncClient",
    "AsyncLease",
    "AsyncWorker",
    "AwaitedJob",
    "Awaiting",
    "BucketCost",
    "Callback",
    "Client",
    "Completed",
    "Completion",
    "Conditions",
    "Entity",
    "EntityOptions",
    "Event",
    "EventOptions",
    "Fault",
    "Figures",
    "Group",
    "HttpRequest",
    "Job",
    "JobError",
    "Lease",
    "LeaseLostError",
    "NoResponseError",
    "Operation",
    "OperationCanceledError",
    "OperationError",
    "OperationFailedError",
    "OutcomeUnknownError",
    "Poll",
    "Problem",
    "Reservation",
    "Result",
    "Settled",
    "Source",
    "State",
    "Submission",
    "TidegateError",
    "WaitTimeoutError",
    "Why",
    "Worker",
]
