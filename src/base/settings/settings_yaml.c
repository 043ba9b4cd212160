/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads settings from YAML through libyaml's events. Rejects what makes a value depend on another
 * place (aliases, merge keys) or on a program's types (tags).
 */
#include "base/settings/settings_file.h"

#include "base/error.h"

#include <string.h>
#include <yaml.h>

/* Unquoted scalars that YAML 1.1 takes for these values. */
static const char *const yes[] = { "true", "True", "TRUE", "yes", "Yes",
                                   "YES",  "on",   "On",   "ON",  NULL };
static const char *const no[] = { "false", "False", "FALSE", "no",  "No",
                                  "NO",    "off",   "Off",   "OFF", NULL };
static const char *const nothing[] = { "", "~", "null", "Null", "NULL", NULL };

typedef struct {
    LhSettingsFile *entries;
    yaml_parser_t parser;
    GError **error;
    unsigned depth;
} YamlReader;

static bool take_node(YamlReader *r, const char *path, yaml_event_t *event);

static bool
fail_yaml(const YamlReader *r, const yaml_mark_t *mark, const char *message)
{
    return lh_settings_fail(r->entries, (guint)mark->line + 1, (guint)mark->column + 1, r->error,
                            "%s", message);
}

static bool
fail_memory(GError **error)
{
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME, "no memory to read YAML");
    return false;
}

/* The next event, which the caller deletes. libyaml has no words for a failed allocation. */
static bool
next_event(YamlReader *r, yaml_event_t *event)
{
    const yaml_parser_t *p = &r->parser;
    g_autofree char *message = NULL;

    if (yaml_parser_parse(&r->parser, event))
        return true;
    if (p->error == YAML_MEMORY_ERROR || p->problem == NULL)
        return fail_memory(r->error);
    message = g_strdup_printf("%s%s%s", p->context != NULL ? p->context : "",
                              p->context != NULL ? ": " : "", p->problem);
    return fail_yaml(r, &p->problem_mark, message);
}

/* Rejects events with a meaning beyond their text. */
static bool
check(const YamlReader *r, const yaml_event_t *event)
{
    const char *message = "anchors and aliases are not read; write the value where it is used";

    if (event->type == YAML_ALIAS_EVENT)
        return fail_yaml(r, &event->start_mark, message);
    if ((event->type == YAML_SCALAR_EVENT && event->data.scalar.tag != NULL) ||
        (event->type == YAML_SEQUENCE_START_EVENT && event->data.sequence_start.tag != NULL) ||
        (event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.tag != NULL))
        return fail_yaml(r, &event->start_mark, "tags (\"!...\") are not read");
    return true;
}

/* The text of a scalar; NULL if it is null. Caller frees. */
static char *
scalar_text(const yaml_event_t *event, bool *plain)
{
    const char *text = (const char *)event->data.scalar.value;

    *plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (*plain && g_strv_contains(nothing, text))
        return NULL;
    if (*plain && g_strv_contains(yes, text))
        return g_strdup("true");
    if (*plain && g_strv_contains(no, text))
        return g_strdup("false");
    return g_strdup(text);
}

/* A NUL within a scalar would hide what follows it. */
static bool
check_scalar(const YamlReader *r, const yaml_event_t *event)
{
    return strlen((const char *)event->data.scalar.value) == event->data.scalar.length ||
           fail_yaml(r, &event->start_mark, "a NUL in a value");
}

static bool
add_scalar(YamlReader *r, const char *path, const yaml_event_t *event)
{
    bool plain;
    g_autofree char *text = scalar_text(event, &plain);
    const LhSettingsKind kind = text == NULL ? LH_SETTINGS_NONE
                                : plain      ? LH_SETTINGS_PLAIN
                                             : LH_SETTINGS_WORD;
    LhSettingsEntry *entry;

    if (!check_scalar(r, event))
        return false;
    entry = lh_settings_add(r->entries, path, kind, (guint)event->start_mark.line + 1,
                            (guint)event->start_mark.column + 1, r->error);
    if (entry != NULL && text != NULL)
        g_ptr_array_add(entry->values, g_steal_pointer(&text));
    return entry != NULL;
}

/* NOLINTBEGIN(misc-no-recursion) */
/* Reads the elements of a list; lists or mappings among them become settings of their own. */
static bool
take_list(YamlReader *r, const char *path, const yaml_event_t *start)
{
    LhSettingsEntry *entry =
        lh_settings_add(r->entries, path, LH_SETTINGS_LIST, (guint)start->start_mark.line + 1,
                        (guint)start->start_mark.column + 1, r->error);
    bool more = entry != NULL, ok = more;

    for (guint index = 0; more; index++) {
        g_autofree char *inner = g_strdup_printf("%s[%u]", path, index);
        yaml_event_t event;
        bool plain;

        if (!next_event(r, &event))
            return false;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            more = false;
        } else if (event.type == YAML_SCALAR_EVENT) {
            char *text = scalar_text(&event, &plain);

            g_ptr_array_add(entry->values, text != NULL ? text : g_strdup("null"));
            ok = more = check(r, &event) && check_scalar(r, &event);
        } else {
            ok = more = take_node(r, inner, &event);
        }
        yaml_event_delete(&event);
    }
    return ok;
}

/* Reads one key and its value. */
static bool
take_pair(YamlReader *r, const char *path, const yaml_event_t *key)
{
    const char *name;
    g_autofree char *inner = NULL;
    yaml_event_t value;
    bool ok;

    if (key->type != YAML_SCALAR_EVENT)
        return fail_yaml(r, &key->start_mark, "a key that is not text");
    if (!check(r, key) || !check_scalar(r, key))
        return false;
    name = (const char *)key->data.scalar.value;
    if (strcmp(name, "<<") == 0)
        return fail_yaml(r, &key->start_mark, "merge keys (\"<<\") are not read");
    inner = g_strconcat(path, path[0] != '\0' ? "." : "", name, NULL);
    if (!next_event(r, &value))
        return false;
    ok = take_node(r, inner, &value);
    yaml_event_delete(&value);
    return ok;
}

static bool
take_mapping(YamlReader *r, const char *path)
{
    bool more = true, ok = true;

    while (more) {
        yaml_event_t key;

        if (!next_event(r, &key))
            return false;
        more = key.type != YAML_MAPPING_END_EVENT;
        if (more)
            ok = more = take_pair(r, path, &key);
        yaml_event_delete(&key);
    }
    return ok;
}

static bool
take_node(YamlReader *r, const char *path, yaml_event_t *event)
{
    bool ok;

    if (!check(r, event))
        return false;
    if (event->type == YAML_SCALAR_EVENT)
        return add_scalar(r, path, event);
    if (r->depth >= LH_SETTINGS_DEPTH_MAX)
        return fail_yaml(r, &event->start_mark, "lists and mappings are nested too deeply");
    if (event->type == YAML_SEQUENCE_START_EVENT) {
        r->depth++;
        ok = take_list(r, path, event);
        r->depth--;
        return ok;
    }
    if (!lh_settings_take(r->entries, path, (guint)event->start_mark.line + 1,
                          (guint)event->start_mark.column + 1, r->error))
        return false;
    r->depth++;
    ok = take_mapping(r, path);
    r->depth--;
    return ok;
}
/* NOLINTEND(misc-no-recursion) */

/* Reads the document: what precedes the root, the root, and what follows it. An empty file has no
 * settings. */
static bool
take_document(YamlReader *r)
{
    bool started = false, ok = true, more = true;

    while (more && ok) {
        yaml_event_t event;

        if (!next_event(r, &event))
            return false;
        if (event.type == YAML_STREAM_END_EVENT)
            more = false;
        else if (event.type == YAML_DOCUMENT_START_EVENT && started)
            ok = fail_yaml(r, &event.start_mark, "a second document");
        else if (event.type == YAML_DOCUMENT_START_EVENT)
            started = true;
        else if (event.type == YAML_MAPPING_START_EVENT)
            ok = check(r, &event) && take_mapping(r, "");
        else if (event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_END_EVENT)
            ok = fail_yaml(r, &event.start_mark, "settings are a mapping, \"key: value\"");
        yaml_event_delete(&event);
    }
    return ok;
}

LhSettingsFile *
lh_settings_yaml(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhSettingsFile) e = lh_settings_new(file, text, length, false, error);
    YamlReader r = { .entries = e, .error = error };
    bool ok;

    if (e == NULL)
        return NULL;
    if (!yaml_parser_initialize(&r.parser)) {
        fail_memory(error);
        return NULL;
    }
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, length);
    ok = take_document(&r);
    yaml_parser_delete(&r.parser);
    return ok ? g_steal_pointer(&e) : NULL;
}
