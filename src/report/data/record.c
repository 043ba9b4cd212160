/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/record.h"

#include "report/data/describe_options.h"

typedef enum {
    VALUE_NONE,
    VALUE_TEXT,
    VALUE_INTEGER,
    VALUE_SECONDS,
    VALUE_REAL,
    VALUE_OPTIONS,
    VALUE_LIST,
} ValueKind;

typedef struct {
    const char *key;
    ValueKind kind;
    bool is_text;
    char *text; /* owned; of TEXT */
    LhWide number;
    double real;
    const LhProgramParams *params;
    LhProgramParams base; /* that the options are compared with */
    const LhField *field; /* of LIST */
    const GArray *list;
} Value;

struct _LhRecord {
    GArray *list; /* of Value */
};

static void
value_clear(gpointer data)
{
    g_free(((Value *)data)->text);
}

LhRecord *
lh_record_new(void)
{
    LhRecord *values = g_new0(LhRecord, 1);

    values->list = g_array_new(FALSE, TRUE, sizeof(Value));
    g_array_set_clear_func(values->list, value_clear);
    return values;
}

void
lh_record_free(LhRecord *values)
{
    if (values == NULL)
        return;
    g_array_unref(values->list);
    g_free(values);
}

static void
add_value(LhRecord *values, Value value)
{
    g_array_append_val(values->list, value);
}

void
lh_record_text(LhRecord *values, const char *key, const char *text)
{
    add_value(values, (Value){ .key = key,
                               .kind = text == NULL ? VALUE_NONE : VALUE_TEXT,
                               .is_text = true,
                               .text = g_strdup(text) });
}

void
lh_record_integer(LhRecord *values, const char *key, LhWide value)
{
    add_value(values, (Value){ .key = key, .kind = VALUE_INTEGER, .number = value });
}

void
lh_record_seconds(LhRecord *values, const char *key, LhWide time_ps)
{
    add_value(values, (Value){ .key = key, .kind = VALUE_SECONDS, .number = time_ps });
}

void
lh_record_real(LhRecord *values, const char *key, double value)
{
    add_value(values, (Value){ .key = key, .kind = VALUE_REAL, .real = value });
}

void
lh_record_none(LhRecord *values, const char *key)
{
    add_value(values, (Value){ .key = key });
}

void
lh_record_options(LhRecord *values, const char *key, const LhProgramParams *p,
                  const LhAttention *attention)
{
    add_value(values, (Value){ .key = key,
                               .kind = VALUE_OPTIONS,
                               .is_text = true,
                               .params = p,
                               .base = { .attention = *attention } });
}

void
lh_record_list(LhRecord *values, const LhField *field, const GArray *list)
{
    add_value(values, (Value){ .key = field->name,
                               .kind = VALUE_LIST,
                               .is_text = true,
                               .field = field,
                               .list = list });
}

guint
lh_record_count(const LhRecord *values)
{
    return values->list->len;
}

void
lh_record_blank(LhRecord *values, guint first)
{
    for (guint i = first; i < values->list->len; i++) {
        Value *value = &g_array_index(values->list, Value, i);

        g_clear_pointer(&value->text, g_free);
        value->kind = VALUE_NONE;
    }
}

static const Value *
value_at(const LhRecord *values, guint index)
{
    return &g_array_index(values->list, Value, index);
}

/* ---- lists ---- */

static const void *
element_at(const Value *v, guint index)
{
    return v->list->data + (gsize)index * v->field->element_size;
}

static guint
elements_count(const Value *v)
{
    return v->list == NULL ? 0 : v->list->len;
}

static void
write_member(LhJsonWriter *w, const LhField *field, const void *element)
{
    const void *at = (const char *)element + field->offset;

    switch (field->type) {
    case LH_FIELD_UINT:
        lh_jsonw_uint(w, field->name, *(const uint64_t *)at);
        break;
    case LH_FIELD_DOUBLE:
        lh_jsonw_double(w, field->name, *(const double *)at);
        break;
    case LH_FIELD_CHOICE:
        lh_jsonw_string(w, field->name, field->choices[*(const int *)at]);
        break;
    default:
        g_assert_not_reached();
    }
}

static void
write_list(LhJsonWriter *w, const Value *v)
{
    lh_jsonw_array_begin(w, v->key);
    for (guint i = 0; i < elements_count(v); i++) {
        lh_jsonw_object_begin(w, NULL);
        for (const LhField *field = v->field->fields; field->name != NULL; field++)
            if (!lh_field_is_absent(v->field, field, element_at(v, i)))
                write_member(w, field, element_at(v, i));
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
append_member(GString *out, const LhField *field, const void *element)
{
    const void *at = (const char *)element + field->offset;
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    switch (field->type) {
    case LH_FIELD_UINT:
        g_string_append_printf(out, "%" G_GUINT64_FORMAT, *(const uint64_t *)at);
        break;
    case LH_FIELD_DOUBLE:
        g_string_append(out, lh_double_to_text(*(const double *)at, text));
        break;
    case LH_FIELD_CHOICE:
        g_string_append(out, field->choices[*(const int *)at]);
        break;
    default:
        g_assert_not_reached();
    }
}

/* As on a command line, joined by semicolons. Caller frees. */
static char *
list_text(const Value *v)
{
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < elements_count(v); i++)
        for (const LhField *field = v->field->fields; field->name != NULL; field++) {
            if (lh_field_is_absent(v->field, field, element_at(v, i)))
                continue;
            if (field > v->field->fields)
                g_string_append_c(out, ':');
            else if (i > 0)
                g_string_append_c(out, ';');
            append_member(out, field, element_at(v, i));
        }
    return g_string_free(out, FALSE);
}

/* ---- JSON and CSV ---- */

static void
write_value(LhJsonWriter *w, const Value *v)
{
    switch (v->kind) {
    case VALUE_NONE:
    case VALUE_TEXT:
        lh_jsonw_string(w, v->key, v->text);
        break;
    case VALUE_INTEGER:
        lh_jsonw_wide(w, v->key, v->number);
        break;
    case VALUE_SECONDS:
        lh_jsonw_seconds(w, v->key, v->number);
        break;
    case VALUE_REAL:
        lh_jsonw_double(w, v->key, v->real);
        break;
    case VALUE_OPTIONS:
        lh_jsonw_object_begin(w, v->key);
        lh_options_json(w, v->params, &v->base);
        lh_jsonw_object_end(w);
        break;
    case VALUE_LIST:
        write_list(w, v);
        break;
    }
}

void
lh_record_json(const LhRecord *values, LhJsonWriter *w)
{
    for (guint i = 0; i < values->list->len; i++)
        write_value(w, value_at(values, i));
}

void
lh_record_columns(const LhRecord *values, LhTable *table)
{
    for (guint i = 0; i < values->list->len; i++)
        lh_table_column(table, value_at(values, i)->key, "", NULL, false);
}

/* Caller frees. */
static char *
cell_text(const Value *v)
{
    char text[LH_WIDE_TEXT_SIZE];

    switch (v->kind) {
    case VALUE_NONE:
    case VALUE_TEXT:
        return g_strdup(v->text != NULL ? v->text : "");
    case VALUE_INTEGER:
        return g_strdup(lh_wide_text(v->number, text));
    case VALUE_SECONDS:
        return g_strdup(lh_wide_seconds(v->number, text));
    case VALUE_REAL:
        return g_strdup(lh_double_to_text(v->real, text));
    case VALUE_OPTIONS:
        return lh_describe_options(v->params, &v->base);
    case VALUE_LIST:
        return list_text(v);
    }
    g_assert_not_reached();
}

void
lh_record_cells(const LhRecord *values, LhTable *table)
{
    for (guint i = 0; i < values->list->len; i++) {
        g_autofree char *text = cell_text(value_at(values, i));

        lh_table_cell(table, text, NULL);
    }
}

const char **
lh_record_keys(const LhRecord *values)
{
    const char **keys = g_new0(const char *, values->list->len + 1);

    for (guint i = 0; i < values->list->len; i++)
        keys[i] = value_at(values, i)->key;
    return keys;
}

char **
lh_record_texts(const LhRecord *values)
{
    char **texts = g_new0(char *, values->list->len + 1);

    for (guint i = 0; i < values->list->len; i++)
        texts[i] = cell_text(value_at(values, i));
    return texts;
}

bool
lh_record_is_text(const LhRecord *values, guint index)
{
    return value_at(values, index)->is_text;
}
