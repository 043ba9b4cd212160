/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of training systems in every syntax. Each one that is read makes a scenario, or an
 * error that names a place in the file or in one that it refers to; and configurations found by the
 * planner can be written as its settings.
 */
#include "fuzz.h"

#include "framework_config/common/config_words.h"
#include "framework_config/configuration.h"
#include "framework_config/configuration_scenario.h"

#include <string.h>

static const char *const files[] = { "input.json", "input.toml", "input.yaml", "input.sh" };

static void
check_entries(const LhSettingsFile *entries)
{
    g_assert(entries->entries->len <= LH_SETTINGS_MAX && strlen(entries->sha256) == 64);
    for (guint i = 0; i < entries->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(entries->entries, i);
        g_autofree char *text = lh_settings_entry_text(entry);

        g_assert(entry->line >= 1 && entry->column >= 1);
        g_assert(g_utf8_validate(entry->path, -1, NULL) && g_utf8_validate(text, -1, NULL));
        g_assert(strlen(entry->path) <= LH_SETTINGS_PATH_MAX);
        g_assert(lh_settings_find(entries, entry->path) != NULL);
    }
}

static void
check_words(const LhConfig *config)
{
    static const LhConfigWay way = { .tensor = 2,
                                     .context = 4,
                                     .data = 1,
                                     .pipeline = 2,
                                     .chunks = 2,
                                     .layers_of_chunk = 1,
                                     .micro_batch_size = 1,
                                     .micro_batches = 2,
                                     .seq_length = 64,
                                     .schedule = "te-a2a-p2p",
                                     .heads = 2,
                                     .others = 2 };
    g_autoptr(GPtrArray) words = lh_config_words(config, &way);

    g_assert(words->len > 0);
    for (guint i = 0; i < words->len; i++)
        g_assert(((const LhConfigWord *)g_ptr_array_index(words, i))->line != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhConfig) config =
            lh_config_parse(files[i], (const char *)data, size, NULL, &error);
        g_autoptr(LhScenario) scenario = lh_scenario_new();
        bool ok;

        fuzz_check(config != NULL, error, NULL); /* the error may be in a file that it refers to */
        if (config == NULL)
            continue;
        check_entries(config->entries);
        check_words(config);
        ok = lh_config_apply(
            config, LH_CONFIG_QUESTION | LH_CONFIG_WAY | LH_CONFIG_SCHEDULE | LH_CONFIG_LIMITS,
            scenario, &error);
        fuzz_check(ok, error, NULL);
        g_assert(ok || strstr(error->message, ": error: ") != NULL);
    }
    return 0;
}
