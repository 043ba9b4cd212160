/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags of messages for formats that match by them: the number of a communicator and, there, that of
 * the message among those of its pair and direction. Both ends come to the same, because the k-th
 * that one rank sends is the k-th that the other receives; so messages meet as they do here,
 * whatever order they are posted in elsewhere.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Of the number of a message; then it begins again. */
#define LH_EXPORT_TAG_BITS 16
/* Communicators of exchanges; those of collectives may come behind them. */
#define LH_EXPORT_EXCHANGES 256

/* Messages of one rank. */
typedef struct _LhExportTags LhExportTags;

LhExportTags *lh_export_tags_new(void);
void lh_export_tags_free(LhExportTags *tags);

/* For the next rank. */
void lh_export_tags_clear(LhExportTags *tags);

/* Of the next message to @peer, or from it. @communicator is less than 2^16. */
uint32_t lh_export_tag(LhExportTags *tags, uint32_t communicator, uint32_t peer, bool send);
