/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios: read from files, changed by options. The field table is in scenario_fields.c.
 */
#include "scenario/scenario.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "scenario/setting.h"

#include <inttypes.h>
#include <string.h>

LhScenario *
lh_scenario_new(void)
{
    LhScenario *s = g_new0(LhScenario, 1);

    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        if (field->type == LH_FIELD_CHOICE)
            *(int *)(void *)((char *)s + field->offset) = -1;
    }
    return s;
}

static void
axis_free(gpointer data)
{
    LhScenarioAxis *axis = data;

    g_ptr_array_unref(axis->values);
    g_free(axis);
}

void
lh_scenario_free(LhScenario *scenario)
{
    if (scenario == NULL)
        return;
    lh_json_clear(lh_scenario_fields(), scenario);
    lh_json_free(scenario->json);
    g_clear_pointer(&scenario->axes, g_ptr_array_unref);
    for (guint i = 0; i < LH_SCENARIO_FIELDS_MAX; i++)
        g_free(scenario->places[i]);
    g_clear_pointer(&scenario->framework_values, g_ptr_array_unref);
    g_free(scenario->model_text);
    g_free(scenario->model_file);
    g_free(scenario->path);
    g_free(scenario);
}

/* Makes the path in *@value relative to @folder instead of to the file. */
static void
rebase(char **value, const char *folder)
{
    char *path;

    if (*value == NULL || g_path_is_absolute(*value) || strcmp(folder, ".") == 0)
        return;
    path = g_build_filename(folder, *value, NULL);
    g_free(*value);
    *value = path;
}

static bool
is_path(const char *value)
{
    return value != NULL && (strchr(value, '/') != NULL || strstr(value, ".json") != NULL);
}

/* A model's folder beside the file counts as a path even if its name has no '/'. */
static bool
is_model(const char *value, const char *folder)
{
    g_autofree char *path = NULL, *named = NULL;

    if (value == NULL || is_path(value))
        return value != NULL;
    named = lh_data_find("models", value, NULL);
    path = g_build_filename(folder, value, NULL);
    return named == NULL && g_file_test(path, G_FILE_TEST_IS_DIR);
}

static void
rebase_all(LhScenario *s)
{
    g_autofree char *folder = g_path_get_dirname(s->path);

    rebase(&s->schedule_file, folder);
    rebase(&s->profile, folder);
    rebase(&s->document_lengths, folder);
    if (is_path(s->cluster))
        rebase(&s->cluster, folder);
    if (is_model(s->model, folder))
        rebase(&s->model, folder);
    if (is_path(s->framework))
        rebase(&s->framework, folder);
}

/* ---- axes from a file ---- */

/* Takes the value of @field out of @scratch as option text and frees what it owned. Caller
 * frees. */
static char *
take_text(const LhField *field, LhScenario *scratch, const char *folder)
{
    const LhField table[] = { *field, { .name = NULL } };
    g_autoptr(GPtrArray) texts = lh_setting_texts(field, scratch);
    char *text = NULL;

    if (field->type == LH_FIELD_BOOL) {
        text = g_strdup(texts->len > 0 ? "true" : "false");
    } else {
        text = g_strdup(g_ptr_array_index(texts, 0));
        if (field->type == LH_FIELD_STRING && /* "12GB/s" is not a path */
            (g_strcmp0(field->names, "files") == 0 || is_path(text) ||
             (g_strcmp0(field->names, "models") == 0 && is_model(text, folder))))
            rebase(&text, folder);
    }
    lh_json_clear(table, scratch);
    return text;
}

/* Reads the values of @list, which has at least one. */
static bool
read_axis(LhScenario *s, const LhField *list, const char *folder, GError **error)
{
    LhFieldLater later = *(LhFieldLater *)(void *)((char *)s->lists + list->offset);
    g_autoptr(LhScenario) scratch = lh_scenario_new();
    g_autofree char *path = g_strdup_printf("sweep.%s", list->name);
    LhScenarioAxis *axis = g_new0(LhScenarioAxis, 1);

    axis->field = list->fields;
    axis->values = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(s->axes, axis);
    if (lh_json_has(s->json, list->name))
        return lh_json_error(
            s->json, path, error,
            "\"%s\" has a list of values here and a value outside \"sweep\"; leave one out",
            list->name);
    while (later.count > 0) {
        char *text;

        if (!lh_json_decode_next(s->json, list, path, &later, scratch, error))
            return false;
        text = take_text(list->fields, scratch, folder);
        if (g_ptr_array_find_with_equal_func(axis->values, text, g_str_equal, NULL)) {
            g_autofree char *element = g_strdup_printf("%s[%u]", path, later.index - 1);
            g_autofree char *value = g_steal_pointer(&text);
            g_autofree char *shown = g_strescape(value, NULL);

            return lh_json_error(s->json, element, error, "\"%s\" has the value %.60s twice", path,
                                 shown);
        }
        g_ptr_array_add(axis->values, text);
    }
    return true;
}

static bool
read_axes(LhScenario *s, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(s->path);

    if (!lh_json_has(s->json, "sweep"))
        return true;
    s->axes = g_ptr_array_new_with_free_func(axis_free);
    for (const LhField *list = lh_scenario_lists(); list->name != NULL; list++) {
        const LhFieldLater *later = (void *)((char *)s->lists + list->offset);

        if (later->count > 0 && !read_axis(s, list, folder, error))
            return false;
    }
    return s->axes->len > 0 ||
           lh_json_error(
               s->json, "sweep", error,
               "\"sweep\" names no field; add one, such as \"seq_length\": [\"64K\", \"128K\"]");
}

/* Whether the file is an explicit program, which is read as the scenario that runs it. */
static bool
is_schedule(const LhJson *json)
{
    static const LhField fields[] = { { .name = "schema", .type = LH_FIELD_STRING },
                                      { .name = NULL } };
    char *schema = NULL;
    bool found = lh_json_decode(json, fields, &schema, true, NULL) &&
                 g_strcmp0(schema, "longhaul.schedule/1") == 0;

    g_free(schema);
    return found;
}

/* Takes over @json, also on failure. */
static LhScenario *
decode_scenario(const char *path, LhJson *json, GError **error)
{
    g_autoptr(LhScenario) s = lh_scenario_new();

    if (!lh_json_decode(json, lh_scenario_fields(), s, false, error)) {
        lh_json_free(json);
        return NULL;
    }
    s->json = json;
    s->path = g_strdup(path);
    rebase_all(s);
    return read_axes(s, error) ? g_steal_pointer(&s) : NULL;
}

LhScenario *
lh_scenario_parse(const char *file, const char *text, gsize length, GError **error)
{
    LhJson *json = lh_json_parse(file, text, length, error);

    return json == NULL ? NULL : decode_scenario(file, json, error);
}

LhScenario *
lh_scenario_load(const char *name, GError **error)
{
    g_autofree char *path = lh_data_find("scenarios", name, error);
    LhJson *json;

    if (path == NULL)
        return NULL;
    json = lh_json_load(path, error);
    if (json != NULL && is_schedule(json)) {
        LhScenario *s = lh_scenario_new();

        lh_json_free(json);
        s->schedule_file = g_steal_pointer(&path);
        return s;
    }
    return json == NULL ? NULL : decode_scenario(path, json, error);
}

static bool *
as_option(LhScenario *scenario, const LhField *field)
{
    return &scenario->as_option[field - lh_scenario_fields()];
}

static char **
place_of(LhScenario *scenario, const LhField *field)
{
    return &scenario->places[field - lh_scenario_fields()];
}

static const LhField *
known_field(const char *name)
{
    const LhField *field = lh_scenario_options();

    while (field->name != NULL && strcmp(field->name, name) != 0)
        field++;
    g_assert(field->name != NULL);
    return field;
}

bool
lh_scenario_set(LhScenario *scenario, const LhField *field, const char *text, GError **error)
{
    bool *given = as_option(scenario, field);

    if (!*given)
        lh_setting_reset(field, scenario);
    if (!lh_setting_parse(field, text, scenario, error))
        return false;
    *given = true;
    g_clear_pointer(place_of(scenario, field), g_free);
    return true;
}

bool
lh_scenario_set_from(LhScenario *scenario, const LhField *field, const char *text, char *place,
                     GError **error)
{
    char **at = place_of(scenario, field);

    if (*at == NULL)
        lh_setting_reset(field, scenario);
    g_free(*at);
    *at = place;
    *as_option(scenario, field) = false;
    return lh_setting_parse(field, text, scenario, error);
}

void
lh_scenario_forget(LhScenario *scenario, const char *name)
{
    const LhField *field = known_field(name);
    const LhField table[] = { *field, { .name = NULL } };
    g_autoptr(LhScenario) empty = lh_scenario_new();
    const size_t size = field->type == LH_FIELD_CHOICE ? sizeof(int) : sizeof(uint64_t);

    lh_json_clear(table, scenario);
    if (field->type == LH_FIELD_UNIT || field->type == LH_FIELD_CHOICE)
        memcpy((char *)scenario + field->offset, (const char *)empty + field->offset, size);
    *as_option(scenario, field) = false;
    g_clear_pointer(place_of(scenario, field), g_free);
}

bool
lh_scenario_has_option(const LhScenario *scenario, const char *name)
{
    return scenario->as_option[known_field(name) - lh_scenario_fields()];
}

bool
lh_scenario_has_options(const LhScenario *scenario)
{
    for (guint i = 0; i < LH_SCENARIO_FIELDS_MAX; i++) {
        if (scenario->as_option[i])
            return true;
    }
    return false;
}

bool
lh_scenario_has(const LhScenario *scenario, const char *name)
{
    if (lh_scenario_has_option(scenario, name) ||
        scenario->places[known_field(name) - lh_scenario_fields()] != NULL)
        return true;
    return scenario->json != NULL && lh_json_has(scenario->json, name);
}

const char *
lh_scenario_program_field(const LhScenario *scenario)
{
    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        if ((field->flags & LH_SCENARIO_OF_PROGRAM) != 0 && lh_scenario_has(scenario, field->name))
            return field->name;
    }
    return NULL;
}

bool
lh_scenario_error(const LhScenario *scenario, const char *name, GError **error, const char *format,
                  ...)
{
    const LhField *field = known_field(name);
    g_autofree char *message = NULL;
    g_autofree char *option = NULL;
    va_list args;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    option = lh_setting_option(field);
    if (scenario->places[field - lh_scenario_fields()] != NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: %s",
                    scenario->places[field - lh_scenario_fields()], message);
        return false;
    }
    if (lh_scenario_has_option(scenario, name) || scenario->json == NULL ||
        !lh_json_has(scenario->json, name)) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: %s", option, message);
        return false;
    }
    return lh_json_error(scenario->json, name, error, "\"%s\": %s", name, message);
}

/* ---- copies ---- */

/* Copies every value of @field. A value that was valid once is valid again. */
static void
copy_field(LhScenario *copy, const LhField *field, const LhScenario *scenario)
{
    g_autoptr(GPtrArray) texts = lh_setting_texts(field, scenario);
    bool taken = true;

    for (guint i = 0; taken && i < texts->len; i++)
        taken = lh_scenario_set(copy, field, g_ptr_array_index(texts, i), NULL);
    g_assert(taken);
}

LhScenario *
lh_scenario_copy(const LhScenario *scenario)
{
    LhScenario *copy = lh_scenario_new();

    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        if (lh_scenario_has(scenario, field->name))
            copy_field(copy, field, scenario);
    }
    copy->serving = scenario->serving;
    copy->global_batch_size = scenario->global_batch_size;
    if (scenario->framework_values != NULL)
        copy->framework_values = g_ptr_array_ref(scenario->framework_values);
    copy->model_text = g_strdup(scenario->model_text);
    copy->model_file = g_strdup(scenario->model_file);
    copy->system = scenario->system;
    copy->constants = scenario->constants;
    return copy;
}

void
lh_scenario_lines(const LhScenario *scenario, GString *out)
{
    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        g_autoptr(GPtrArray) texts = NULL;

        if (!lh_scenario_has(scenario, field->name))
            continue;
        texts = lh_setting_texts(field, scenario);
        for (guint i = 0; i < texts->len; i++) {
            const char *text = g_ptr_array_index(texts, i);

            g_string_append_printf(out, "%s=%s\n", field->name, text != NULL ? text : "");
        }
    }
    if (scenario->global_batch_size != 0)
        g_string_append_printf(out, "batch %" PRIu64 "\n", scenario->global_batch_size);
    for (guint i = 0; scenario->framework_values != NULL && i < scenario->framework_values->len;
         i++)
        g_string_append_printf(out, "framework %s\n",
                               (const char *)g_ptr_array_index(scenario->framework_values, i));
    if (scenario->system != NULL)
        g_string_append(out, "as a configuration\n"); /* the framework says which */
}

void
lh_scenario_replace(LhScenario *scenario, const char *name, const char *value)
{
    const LhField *field = known_field(name);
    bool taken;

    lh_setting_reset(field, scenario);
    taken = lh_scenario_set(scenario, field, value, NULL);
    g_assert(taken);
}

/* ---- the axes of a sweep ---- */

GPtrArray *
lh_scenario_axes(const LhScenario *scenario)
{
    GPtrArray *axes = g_ptr_array_new();

    for (guint i = 0; scenario->axes != NULL && i < scenario->axes->len; i++) {
        LhScenarioAxis *axis = g_ptr_array_index(scenario->axes, i);

        if (!scenario->as_option[axis->field - lh_scenario_fields()])
            g_ptr_array_add(axes, axis);
    }
    return axes;
}

void
lh_scenario_choose(LhScenario *scenario, const LhScenarioAxis *axis, guint index)
{
    const char *value = g_ptr_array_index(axis->values, index);

    if (axis->field->type != LH_FIELD_BOOL)
        lh_scenario_replace(scenario, axis->field->name, value);
    else if (strcmp(value, "true") == 0)
        lh_scenario_replace(scenario, axis->field->name, NULL);
}
