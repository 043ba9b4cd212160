/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message tags for formats that match sends and receives by tag. A tag consists of the
 * communicator's number and the message's number among those of the same pair and direction. Both
 * ends compute the same tag, because the k-th message sent is the k-th received. So messages match
 * as they do here, in whatever order they are posted.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Bits of the message number, which wraps around. */
#define LH_EXPORT_TAG_BITS 16
/* Communicators of exchanges; communicators of collectives may have numbers from here on. */
#define LH_EXPORT_EXCHANGES 256

/* Message counts of one rank. */
typedef struct _LhExportTags LhExportTags;

LhExportTags *lh_export_tags_new(void);
void lh_export_tags_free(LhExportTags *tags);

/* Resets the counts for the next rank. */
void lh_export_tags_clear(LhExportTags *tags);

/* Tag of the next message to or from @peer. @communicator is less than 2^16. */
uint32_t lh_export_tag(LhExportTags *tags, uint32_t communicator, uint32_t peer, bool send);
