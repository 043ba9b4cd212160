/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structural mutations of JSON: byte mutations rarely leave a document that a reader gets far into.
 * Every other time, and for inputs that are not JSON, libFuzzer's own mutations are used. Linked
 * with libFuzzer only.
 */
#include "fuzz.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

typedef struct {
    cJSON *root;
    GRand *random;
    GPtrArray *items; /* cJSON *: all but the root */
    GPtrArray *parents;
} Document;

static void
list_items(Document *d, cJSON *parent)
{
    for (cJSON *item = parent->child; item != NULL; item = item->next) {
        g_ptr_array_add(d->items, item);
        g_ptr_array_add(d->parents, parent);
        list_items(d, item);
    }
}

static guint
below(Document *d, guint count)
{
    return g_rand_int(d->random) % count;
}

static cJSON *
any_item(Document *d)
{
    return g_ptr_array_index(d->items, below(d, d->items->len));
}

/* Swaps the contents of two items; their places and keys stay. */
static void
swap(cJSON *a, cJSON *b)
{
    const cJSON held = *a;

    a->child = b->child;
    a->type = b->type;
    a->valuestring = b->valuestring;
    a->valueint = b->valueint;
    a->valuedouble = b->valuedouble;
    b->child = held.child;
    b->type = held.type;
    b->valuestring = held.valuestring;
    b->valueint = held.valueint;
    b->valuedouble = held.valuedouble;
}

/* Replaces @item by @value, which is consumed. */
static void
replace(cJSON *item, cJSON *value)
{
    swap(item, value);
    cJSON_Delete(value);
}

static double
other_number(Document *d, double number)
{
    static const double special[] = {
        0, 1, -1, 2, 64, 65535, 65536, 2147483648, 4294967295.0, 4294967296.0, 1e15, 1e300
    };

    switch (below(d, 5)) {
    case 0:
        return special[below(d, G_N_ELEMENTS(special))];
    case 1:
        return number * 2;
    case 2:
        return number / 2;
    default:
        return number + (double)below(d, 5) - 2;
    }
}

static void
change_value(Document *d, cJSON *item)
{
    const cJSON *other = any_item(d);

    if (cJSON_IsNumber(item) && below(d, 3) != 0) {
        replace(item, cJSON_CreateNumber(other_number(d, item->valuedouble)));
    } else if (cJSON_IsBool(item)) {
        replace(item, cJSON_CreateBool(!cJSON_IsTrue(item)));
    } else {
        /* of the same kind if one is found soon: a name for a name */
        for (int i = 0; i < 20 && (other->type & 0xff) != (item->type & 0xff); i++)
            other = any_item(d);
        replace(item, cJSON_Duplicate(other, 1));
    }
}

static void
change_string(Document *d, cJSON *item)
{
    char text[64] = "";
    size_t length;

    if (!cJSON_IsString(item)) {
        change_value(d, item);
        return;
    }
    g_strlcpy(text, item->valuestring, sizeof(text) - 1);
    length = LLVMFuzzerMutate((uint8_t *)text, strlen(text), sizeof(text) - 1);
    text[length] = '\0';
    replace(item, cJSON_CreateString(text));
}

/* Changes the half of a region's parts, or removes it. */
static void
change_half(Document *d, cJSON *item)
{
    static const char *const halves[] = { "", ":k", ":v" };
    g_autofree char *text = NULL;

    if (!cJSON_IsString(item)) {
        change_value(d, item);
        return;
    }
    text = g_strdup_printf("%.*s%s", (int)strcspn(item->valuestring, ":"), item->valuestring,
                           halves[below(d, G_N_ELEMENTS(halves))]);
    replace(item, cJSON_CreateString(text));
}

static void
mutate_item(Document *d)
{
    const guint index = below(d, d->items->len);
    cJSON *item = g_ptr_array_index(d->items, index);
    cJSON *parent = g_ptr_array_index(d->parents, index);

    switch (below(d, 9)) {
    case 0:
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, item));
        break;
    case 1:
        if (cJSON_IsArray(parent))
            cJSON_AddItemToArray(parent, cJSON_Duplicate(item, 1));
        else
            change_value(d, item);
        break;
    case 2:
        swap(item, cJSON_GetArrayItem(parent, (int)below(d, (guint)cJSON_GetArraySize(parent))));
        break;
    case 3:
        change_string(d, item);
        break;
    case 4:
        change_half(d, item);
        break;
    default:
        change_value(d, item);
        break;
    }
}

/* The lists point into the tree, so they are rebuilt for every mutation. */
static void
mutate_tree(Document *d)
{
    for (guint rounds = 1 + below(d, 3); rounds > 0; rounds--) {
        g_ptr_array_set_size(d->items, 0);
        g_ptr_array_set_size(d->parents, 0);
        list_items(d, d->root);
        if (d->items->len > 0)
            mutate_item(d);
    }
}

static size_t
mutate_json(cJSON *root, uint8_t *data, size_t size_max, GRand *random)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    g_autoptr(GPtrArray) parents = g_ptr_array_new();
    Document document = { root, random, items, parents };
    char *text;
    size_t size = 0;

    mutate_tree(&document);
    text = cJSON_PrintUnformatted(root);
    if (text != NULL && strlen(text) <= size_max) {
        size = strlen(text);
        memcpy(data, text, size);
    }
    free(text);
    return size;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    cJSON *root = g_rand_boolean(random) ? cJSON_ParseWithLength((const char *)data, size) : NULL;
    size_t mutated = 0;

    if (root != NULL)
        mutated = mutate_json(root, data, size_max, random);
    cJSON_Delete(root);
    return mutated > 0 ? mutated : LLVMFuzzerMutate(data, size, size_max);
}
