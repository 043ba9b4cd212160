/*
 * The rows "attention" of device files: attention kernels of libraries, by their tiles.
 */
#pragma once

#include "sim/device.h"

/* Of one row, LhAttentionRow. */
extern const LhField lh_attention_fields[];

/* Sets what a row starts from. */
void lh_attention_init(void *row);

/* Refuses row @index of a decoded device if its values do not go together, or an earlier row is
 * about the same; completes it otherwise. */
bool lh_attention_check(const LhJson *json, LhDevice *device, guint index, GError **error);
