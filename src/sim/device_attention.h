/*
 * The rows "attention" of device files: attention kernels of libraries, by their tiles.
 */
#pragma once

#include "sim/device.h"

/* Of one row, LhAttentionRow. */
extern const LhField lh_attention_fields[];

/* Sets what a row starts from. */
void lh_attention_init(void *row);

/* Refuses a decoded device whose rows do not go together with its version, with its other values or
 * with each other; completes the rows otherwise. */
bool lh_attention_check(const LhJson *json, LhDevice *device, GError **error);
