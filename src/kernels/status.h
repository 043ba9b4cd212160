/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status of a kernel call. Plain C: shared with device code.
 */
#pragma once

/* Code, name, message. */
#define LH_STATUS_MAP(X)                                                                           \
    X(OK, "ok", "no error")                                                                        \
    X(UNSUPPORTED, "unsupported", "the kernel has no implementation for this call")                \
    X(OUT_OF_MEMORY, "out of memory", "a device allocation failed")                                \
    X(DEVICE, "device", "the device reported an error")

enum lh_status {
#define LH_STATUS_ENUM(code, name, message) LH_STATUS_##code,
    LH_STATUS_MAP(LH_STATUS_ENUM)
#undef LH_STATUS_ENUM
};
