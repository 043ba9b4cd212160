/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/configuration_scenario.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"

#include <string.h>

bool
lh_config_check_model(const LhConfig *config, const LhScenario *scenario, GError **error)
{
    if (scenario->model != NULL || scenario->model_text != NULL)
        return true;
    return lh_config_fail(config, config->no_model_at, error,
                          "the file does not name the model: %s, or name the model with --model",
                          config->no_model != NULL ? config->no_model
                                                   : "files of this framework contain no model");
}

static const LhField *
field_named(const char *name)
{
    const LhField *field = lh_scenario_options();

    while (strcmp(field->name, name) != 0)
        field++;
    return field;
}

/* Rewords an error about a value, which names the option, as an error of the file. */
static bool
reword(const LhConfig *config, const LhSettingsEntry *entry, GError *cause, GError **error)
{
    const char *colon = strstr(cause->message, ": ");
    g_autofree char *path = g_strescape(entry != NULL ? entry->path : "", NULL);

    lh_config_fail(config, entry, error, "\"" LH_CONFIG_SHOWN "\": %s", path,
                   colon != NULL ? colon + 2 : cause->message);
    g_error_free(cause);
    return false;
}

/* Whether the scenario file given beside the configuration sets the field, or sweeps it. */
static bool
is_said(const LhScenario *scenario, const char *field)
{
    for (guint i = 0; scenario->axes != NULL && i < scenario->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(scenario->axes, i);

        if (strcmp(axis->field->name, field) == 0)
            return true;
    }
    return scenario->json != NULL && lh_json_has(scenario->json, field);
}

bool
lh_config_check_way(const LhConfig *config, unsigned parts, const LhScenario *scenario,
                    GError **error)
{
    for (guint i = 0; (parts & LH_CONFIG_WAY) != 0 && i < config->lacks->len; i++) {
        const LhConfigLack *lack = g_ptr_array_index(config->lacks, i);

        if (!lh_scenario_has_option(scenario, lack->field) && !is_said(scenario, lack->field))
            return lh_config_fail(config, lack->entry, error, "%s", lack->why);
    }
    return true;
}

void
lh_config_note_unsaid(LhConfig *config, unsigned parts, const LhScenario *scenario)
{
    for (guint i = 0; i < config->unsaid->len; i++) {
        const LhConfigLack *lack = g_ptr_array_index(config->unsaid, i);

        if ((lack->part & parts) != 0 && !lh_scenario_has_option(scenario, lack->field) &&
            !is_said(scenario, lack->field) && scenario->document_lengths == NULL)
            lh_config_note(config, lack->entry, "%s", lack->why);
    }
}

static bool
apply_setting(const LhConfig *config, const LhConfigSetting *setting, LhScenario *scenario,
              GError **error)
{
    g_autofree char *where = lh_config_place(config, setting->entry);
    g_autofree char *path =
        g_strescape(setting->entry != NULL ? setting->entry->path : setting->field, NULL);
    GError *cause = NULL;

    if (is_said(scenario, setting->field))
        return true;
    if (!lh_scenario_set_from(scenario, field_named(setting->field), setting->value,
                              g_strdup_printf("%s: error: \"" LH_CONFIG_SHOWN "\"", where, path),
                              &cause))
        return reword(config, setting->entry, cause, error);
    return true;
}

bool
lh_config_apply(const LhConfig *config, unsigned parts, LhScenario *scenario, GError **error)
{
    const char *const *schedules = config->system->schedules;
    const LhConfigSetting step = { .field = "step" };
    const LhConfigSetting framework = { .field = "framework",
                                        .value = (char *)config->framework_name };

    if (!apply_setting(config, &step, scenario, error) ||
        !apply_setting(config, &framework, scenario, error))
        return false;
    g_clear_pointer(&scenario->framework_values, g_ptr_array_unref);
    scenario->framework_values = g_ptr_array_ref(config->framework_values);
    for (guint i = 0; i < config->settings->len; i++) {
        const LhConfigSetting *setting = g_ptr_array_index(config->settings, i);

        if ((setting->part & parts) != 0 && !apply_setting(config, setting, scenario, error))
            return false;
    }
    for (; (parts & LH_CONFIG_LIMITS) != 0 && *schedules != NULL; schedules++) {
        const LhConfigSetting schedule = { .field = "schedule", .value = (char *)*schedules };

        if (!apply_setting(config, &schedule, scenario, error))
            return false;
    }
    if ((parts & LH_CONFIG_LIMITS) != 0)
        scenario->system = config->system;
    if ((parts & LH_CONFIG_QUESTION) != 0) {
        scenario->global_batch_size = config->global_batch_size;
        g_free(scenario->model_text);
        scenario->model_text = g_strdup(config->model);
        g_free(scenario->model_file);
        scenario->model_file = g_strdup(config->entries->file);
    }
    return true;
}
