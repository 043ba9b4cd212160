/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_config.h"

#include "base/escape.h"
#include "report/base/text.h"

#include <inttypes.h>
#include <string.h>

#define NAMES_SHOWN 20
#define COLUMN 52 /* column of the remark on a line */

void
lh_describe_entries(const LhConfig *config, const GPtrArray *entries, const char *what,
                    GString *out)
{
    if (entries->len == 0)
        return;
    lh_escape_line(out, config->entries->file);
    g_string_append_printf(out, ": %s: ", what);
    for (guint i = 0; i < MIN(entries->len, NAMES_SHOWN); i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(entries, i);

        g_string_append(out, i > 0 ? ", " : "");
        lh_escape_line(out, entry->path);
        g_string_append(out, " (");
        if (entry->file != NULL) {
            lh_escape_line(out, entry->file);
            g_string_append(out, ", ");
        }
        g_string_append_printf(out, "line %u)", entry->line);
    }
    if (entries->len > NAMES_SHOWN)
        g_string_append_printf(out, " and %u more", entries->len - NAMES_SHOWN);
}

static void
describe_list(const LhConfig *config, const GPtrArray *entries, const char *what, GString *out)
{
    lh_describe_entries(config, entries, what, out);
    if (entries->len > 0)
        g_string_append_c(out, '\n');
}

void
lh_describe_config(const LhConfig *config, GString *out)
{
    lh_escape_line(out, config->entries->file);
    g_string_append_printf(out, ": %u %s of %s %s read", config->read,
                           config->read == 1 ? "setting" : "settings",
                           lh_config_system_name(config), config->read == 1 ? "is" : "are");
    if (config->without_effect > 0)
        g_string_append_printf(out, "; %u more do not affect the prediction",
                               config->without_effect);
    g_string_append_c(out, '\n');
    describe_list(config, config->elsewhere, "defined by the framework's file", out);
    describe_list(config, config->unknown, "not understood and ignored", out);
    for (guint i = 0; i < config->notes->len; i++) {
        lh_escape_line(out, g_ptr_array_index(config->notes, i));
        g_string_append_c(out, '\n');
    }
}

/* Warns about a file that starts processes for another number of GPUs. */
static void
describe_processes(const LhConfig *config, uint32_t gpus, GString *out)
{
    if (config->processes == 0 || config->processes == gpus)
        return;
    lh_escape_line(out, config->entries->file);
    g_string_append_printf(out, " starts %" PRIu64 " processes, but there are %u GPUs\n",
                           config->processes, gpus);
}

void
lh_describe_start(const LhConfig *config, const LhBaselineConfig *start, uint32_t gpus,
                  double best_s, uint64_t limit_bytes, GString *out)
{
    describe_processes(config, gpus, out);
    lh_escape_line(out, config->entries->file);
    if (start->way != NULL) {
        g_string_append(out, " configures ");
        lh_escape_line(out, start->way);
    }
    if (start->refusal != NULL) {
        g_string_append(out, start->way != NULL ? ", which is not possible: "
                                                : " is for other GPUs than these: ");
        lh_escape_line(out, start->refusal);
        g_string_append_c(out, '\n');
        return;
    }
    if (!start->fits)
        g_string_append_printf(out, ", which needs %.4g GiB of the %.4g GiB available.\n",
                               (double)start->peak_bytes / LH_GIB, (double)limit_bytes / LH_GIB);
    else if (best_s > 0)
        g_string_append_printf(
            out, ": %.4g s per step with %.4g GiB, %.2f times as long as the fastest.\n",
            start->iteration_s, (double)start->peak_bytes / LH_GIB, start->iteration_s / best_s);
    else
        g_string_append_printf(out, ": %.4g s per step with %.4g GiB.\n", start->iteration_s,
                               (double)start->peak_bytes / LH_GIB);
}

/* Appends a line and the edit it needs. */
static void
describe_word(const LhConfigWord *word, GString *out)
{
    const gsize from = out->len;

    g_string_append(out, "    ");
    lh_escape_line(out, word->line);
    if (word->was == NULL && !word->added && !word->take_out) {
        g_string_append_c(out, '\n');
        return;
    }
    while (out->len - from < COLUMN)
        g_string_append_c(out, ' ');
    if (word->take_out) {
        g_string_append(out, "  remove it");
    } else if (word->added) {
        g_string_append(out, "  new");
    } else {
        g_string_append(out, "  was ");
        lh_escape_line(out, word->was);
    }
    g_string_append_c(out, '\n');
}

void
lh_describe_words(const LhConfig *config, const LhPlanSpace *space, guint point, LhFormat format,
                  GString *out)
{
    g_autoptr(GPtrArray) words = lh_plan_words(config, space, point);

    if (format == LH_FORMAT_MD)
        g_string_append(out, "```\n");
    for (guint i = 0; i < words->len; i++)
        describe_word(g_ptr_array_index(words, i), out);
    if (format == LH_FORMAT_MD)
        g_string_append(out, "```\n");
}
