"""HIP's status numbers (hip_runtime_api.h, hiprtc.h), and failures that carry one."""

from __future__ import annotations

SUCCESS = 0
INVALID_VALUE = 1
INVALID_IMAGE = 200
NO_BINARY_FOR_GPU = 209
INVALID_HANDLE = 400
NOT_FOUND = 500
LAUNCH_FAILURE = 719
NOT_SUPPORTED = 801
UNKNOWN = 999

RTC_SUCCESS = 0
RTC_INVALID_OPTION = 5
RTC_COMPILATION = 6
RTC_INTERNAL_ERROR = 11


class HipFailure(Exception):
    """A call that fails: its status and what `hipGetErrorString` then says."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
