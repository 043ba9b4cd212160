/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device as unlike the CPU as possible without special hardware: the host cannot touch its
 * memory, whose addresses differ from the handles; its streams are threads that execute commands
 * some time later; freed memory is gone; kernels write before they read.
 */
#pragma once

#include "runtime/backend.h"

extern const LhRunDevice toy_device;

/* All ranks in this process, on toy devices. */
extern const LhBackend toy_backend;
/* The same, but a thread submits the ops. */
extern const LhBackend toy_submitting_backend;

/* Makes the command with this number, counted over all streams, fail when it is executed; 0:
 * none. */
void toy_device_fail_at(gint command);

/* Number of commands executed by streams, and of blocks allocated. */
gint toy_device_commands(void);
gint toy_device_blocks(void);
