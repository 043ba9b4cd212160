/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows "attention" of device files: attention kernels of libraries, by their tiles.
 */
#pragma once

#include "sim/cost/device.h"

/* Limits of device files, and the choices of their "mask". */
#define LH_DEVICE_TEXT_MAX 1000
#define LH_HEAD_DIM_MAX 65536
#define LH_RATE_MIN 1.0 /* flop/s, bytes/s: positive */
#define LH_RATE_MAX 1e18
#define LH_RESIDUAL_MAX 1e6
extern const char *const lh_device_masks[3];

/* Fields of a row, LhAttentionRow. */
extern const LhField lh_attention_fields[];

/* Sets the defaults of a row. */
void lh_attention_init(void *row);

/* Rejects a decoded device whose rows are inconsistent with its version, its other values or each
 * other; completes the rows otherwise. */
bool lh_attention_check(const LhJson *json, LhDevice *device, GError **error);
