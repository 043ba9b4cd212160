/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/export_tags.h"

#include "program/program.h"

/* Number of messages so far, by communicator, peer and direction. */
typedef struct {
    gint64 key;
    uint32_t messages;
} Count;

struct _LhExportTags {
    GHashTable *counts; /* of Count, which begins with its hash key */
};

LhExportTags *
lh_export_tags_new(void)
{
    LhExportTags *tags = g_new(LhExportTags, 1);

    tags->counts = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    return tags;
}

void
lh_export_tags_free(LhExportTags *tags)
{
    g_hash_table_unref(tags->counts);
    g_free(tags);
}

void
lh_export_tags_clear(LhExportTags *tags)
{
    g_hash_table_remove_all(tags->counts);
}

uint32_t
lh_export_tag(LhExportTags *tags, uint32_t communicator, uint32_t peer, bool send)
{
    const gint64 key = (((gint64)communicator * LH_RANKS_MAX + peer) << 1) + send;
    Count *count = g_hash_table_lookup(tags->counts, &key);

    if (count == NULL) {
        count = g_new0(Count, 1);
        count->key = key;
        g_hash_table_insert(tags->counts, &count->key, count);
    }
    return communicator << LH_EXPORT_TAG_BITS |
           (count->messages++ & ((UINT32_C(1) << LH_EXPORT_TAG_BITS) - 1));
}
