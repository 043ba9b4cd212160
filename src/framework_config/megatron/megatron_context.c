/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/megatron/megatron_context.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/common/config_words.h"
#include "step/step.h"

#include <inttypes.h>
#include <string.h>

const char *const lh_config_megatron_schedules[] = { "te-p2p", "te-allgather", "te-a2a",
                                                     "te-a2a-p2p", NULL };

/* --cp-comm-type for each schedule. */
static const char *const comm_types[] = { "p2p", "all_gather", "a2a", "a2a+p2p", NULL };

/* The communication type, if all layers have the same; "allgather" is another spelling. */
static bool
read_comm_type(LhConfig *c, const char **type, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "cp-comm-type");
    g_autofree char *shown = NULL;

    *type = "p2p";
    if (entry == NULL || entry->values->len == 0)
        return true;
    *type = g_ptr_array_index(entry->values, 0);
    for (guint i = 1; i < entry->values->len; i++) {
        if (strcmp(g_ptr_array_index(entry->values, i), *type) != 0) {
            lh_config_note(c, entry, "layers use several communication types; the first is taken");
            break;
        }
    }
    if (strcmp(*type, "allgather") == 0)
        *type = "all_gather";
    if (lh_config_index(comm_types, *type) >= 0)
        return true;
    shown = g_strescape(*type, NULL);
    return lh_config_fail(
        c, entry, error,
        "\"cp-comm-type\": found \"%.40s\"; allowed: p2p, all_gather, a2a, a2a+p2p", shown);
}

/* "8 2" or ["8", "2"] as "8,2"; NULL: not given. Caller frees. */
static char *
hierarchy_of(const LhConfig *c)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "hierarchical-context-parallel-sizes");
    g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;
    g_auto(GStrv) words = text != NULL ? g_strsplit_set(text, " ,", -1) : NULL;
    g_autoptr(GString) sizes = g_string_new(NULL);

    for (guint i = 0; words != NULL && words[i] != NULL; i++) {
        if (words[i][0] != '\0')
            g_string_append_printf(sizes, "%s%s", sizes->len > 0 ? "," : "", words[i]);
    }
    return sizes->len > 0 ? g_string_free(g_steal_pointer(&sizes), FALSE) : NULL;
}

static void
warn_hierarchy(LhConfig *c, const char *type, const char *sizes, uint64_t context)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "cp-comm-type");
    const LhSettingsEntry *levels = lh_config_entry(c, "hierarchical-context-parallel-sizes");
    guint64 first, second;
    g_auto(GStrv) parts = sizes != NULL ? g_strsplit(sizes, ",", -1) : NULL;

    if (strcmp(type, "a2a+p2p") == 0 && sizes == NULL)
        lh_config_note(c, entry,
                       "a2a+p2p needs --hierarchical-context-parallel-sizes: newer versions stop "
                       "without it; older ones communicate nothing, so that every rank attends "
                       "only to its own tokens: fast and wrong");
    else if (strcmp(type, "a2a+p2p") != 0 && sizes != NULL)
        lh_config_note(c, levels, "only a2a+p2p reads it, and the communication type is %s", type);
    if (parts != NULL && g_strv_length(parts) == 2 &&
        g_ascii_string_to_unsigned(parts[0], 10, 1, UINT16_MAX, &first, NULL) &&
        g_ascii_string_to_unsigned(parts[1], 10, 1, UINT16_MAX, &second, NULL) &&
        first * second != context)
        lh_config_note(c, levels,
                       "%" PRIu64 " x %" PRIu64 " is not the %" PRIu64
                       " context-parallel ranks; Megatron-LM stops",
                       first, second, context);
}

static void
warn_context(LhConfig *c, const char *type, uint64_t context)
{
    const LhSettingsEntry *window = lh_config_entry(c, "window-size");
    uint64_t length = 0;

    lh_config_count(c, "seq-length", &length, NULL);
    if (context > 1 && length % (2 * context) != 0)
        lh_config_note(c, lh_config_entry(c, "seq-length"),
                       "%" PRIu64 " tokens cannot be split into the %" PRIu64
                       " half-chunks of %" PRIu64 " context-parallel ranks",
                       length, 2 * context, context);
    if (context > 1 && window != NULL && strcmp(type, "a2a") != 0 &&
        strcmp(type, "all_gather") != 0)
        lh_config_note(c, window,
                       "with context parallelism only a2a and all_gather support a window; with %s "
                       "TransformerEngine stops, or attends to the whole sequence",
                       type);
}

/* Megatron-DeepSpeed: DeepSpeed's Ulysses, an all-to-all of heads for tokens. */
static bool
take_ulysses(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "ds-sequence-parallel-size");
    uint64_t size = 1;

    if (!lh_config_count(c, "ds-sequence-parallel-size", &size, error))
        return false;
    lh_config_set_count(c, entry, LH_CONFIG_WAY, "context_parallel_size", MAX(size, 1));
    lh_config_set(c, entry, LH_CONFIG_SCHEDULE, "schedule", "ulysses");
    return true;
}

bool
lh_config_megatron_take_context(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "cp-comm-type");
    g_autofree char *sizes = hierarchy_of(c);
    const char *type;
    uint64_t context = 1;

    if (!read_comm_type(c, &type, error) ||
        !lh_config_count(c, "context-parallel-size", &context, error))
        return false;
    if (lh_config_entry(c, "ds-sequence-parallel-size") != NULL)
        return take_ulysses(c, error);
    if (lh_config_entry(c, "context-parallel-size") == NULL)
        lh_config_set_count(c, NULL, LH_CONFIG_WAY, "context_parallel_size", 1);
    warn_context(c, type, context);
    if (context > 1)
        warn_hierarchy(c, type, sizes, context);
    lh_config_set(c, entry, LH_CONFIG_SCHEDULE, "schedule",
                  lh_config_megatron_schedules[lh_config_index(comm_types, type)]);
    if (strcmp(type, "a2a+p2p") == 0 && sizes != NULL)
        lh_config_set(c, lh_config_entry(c, "hierarchical-context-parallel-sizes"),
                      LH_CONFIG_SCHEDULE, "hierarchical_context_parallel_sizes", sizes);
    return true;
}

bool
lh_config_megatron_take_window(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "window-size");
    g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;
    g_auto(GStrv) sides =
        text != NULL ? g_strsplit_set(g_strdelimit(text, "()[]", ' '), ", ", -1) : NULL;
    guint64 left;

    for (guint i = 0; sides != NULL && sides[i] != NULL; i++) {
        if (sides[i][0] == '\0')
            continue;
        if (!g_ascii_string_to_unsigned(sides[i], 10, 0, UINT32_MAX, &left, NULL))
            return lh_config_fail(c, entry, error,
                                  "\"window-size\": found \"%.40s\"; allowed: the tokens before "
                                  "and after the query's own, 4096,0",
                                  sides[i]);
        lh_config_set_count(c, entry, LH_CONFIG_QUESTION, "window_size", left + 1);
        return true;
    }
    return true;
}

void
lh_config_megatron_say_context(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    const int type =
        way->context > 1 ? lh_config_index(lh_config_megatron_schedules, way->schedule) : -1;
    g_autofree char *sizes = g_strdup_printf("%u %u", way->heads, way->others);

    lh_config_say_count(c, words, "context-parallel-size", way->context);
    if (type >= 0)
        lh_config_say(c, words, "cp-comm-type", LH_SETTINGS_WORD, comm_types[type]);
    if (type >= 0 && strcmp(way->schedule, "te-a2a-p2p") == 0)
        lh_config_say(c, words, "hierarchical-context-parallel-sizes", LH_SETTINGS_LIST, sizes);
    else
        lh_config_unsay(c, words, "hierarchical-context-parallel-sizes");
}
