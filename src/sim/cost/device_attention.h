/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows "attention" of device files: attention kernels of libraries, by their tiles.
 */
#pragma once

#include "sim/cost/device.h"

/* Limits of device files, the words of their "mask". */
#define LH_DEVICE_TEXT_MAX 1000
#define LH_HEAD_DIM_MAX 65536
#define LH_RATE_MIN 1.0 /* flop/s, bytes/s: more than nothing */
#define LH_RATE_MAX 1e18
#define LH_RESIDUAL_MAX 1e6
extern const char *const lh_device_masks[3];

/* Of one row, LhAttentionRow. */
extern const LhField lh_attention_fields[];

/* Sets what a row starts from. */
void lh_attention_init(void *row);

/* Refuses a decoded device whose rows do not go together with its version, with its other values or
 * with each other; completes the rows otherwise. */
bool lh_attention_check(const LhJson *json, LhDevice *device, GError **error);
