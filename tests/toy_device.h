/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that is as unlike the processor as one without special hardware can be: the host cannot
 * touch its memory, which is at other addresses than the handles that it gives out; its streams
 * are threads that do what they are asked for some time later; what is released is gone; kernels
 * write before they read.
 */
#pragma once

#include "runtime/backend.h"

extern const LhRunDevice toy_device;

/* All ranks in this process, on toy devices. */
extern const LhBackend toy_backend;
/* The same, but a thread submits the ops. */
extern const LhBackend toy_submitting_backend;

/* From now on the command with this number, over all streams, fails when its time comes; 0: none.
 */
void toy_device_fail_at(gint command);

/* Commands that streams have carried out, blocks of memory that are allocated. */
gint toy_device_commands(void);
gint toy_device_blocks(void);
