"""Lower a trace with a change: the answer to `LowerChanged`."""

from __future__ import annotations

import base64

from jaxsight.tracer.compat import lowering
from jaxsight.tracer.failures import UserError, failure, refusal
from jaxsight.tracer.job import Job, under
from jaxsight.tracer.programs.changed import NoSuchChange, changed
from jaxsight.wire.messages.replies import LoweredChange
from jaxsight.wire.messages.requests import LowerChanged


def change(job: Job[LowerChanged]) -> LoweredChange:
    """Lower an earlier trace for one device with a change.

    Raises:
        UserError: it is no longer kept, cannot be changed so, or cannot be lowered; then its stage
            is `lower`.
    """
    request = job.request
    job.begin("lower", request.platform)
    trace = job.traces.of(request.trace)
    with under(trace.settings):
        try:
            new = changed(trace.stage, request.change, request.at)
            artifact = lowering.artifact(new.stage, request.platform, request.capability)
        except NoSuchChange as reason:
            raise refusal("lower", f"no change: {reason}", type="NoSuchChange") from reason
        except Exception as error:
            raise UserError(failure(error, "lower")) from error
    program = base64.b64encode(artifact.bytes).decode("ascii")
    return LoweredChange(request.id, program, new.operations, new.path, new.copies)
